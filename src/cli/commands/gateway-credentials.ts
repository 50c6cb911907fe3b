import { KINDS, type Credential } from '../../gateway/model.ts'
import type { TestResult } from '../../gateway/kinds/test.ts'
import { canAsk, confirm } from '../ask.ts'
import { defineCommand, type Context } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import { askKind, askMissing, askName } from '../gateway/ask-credential.ts'
import { CREDENTIAL_FLAGS, credentialBody } from '../gateway/credential-fields.ts'
import { given } from '../gateway/fields.ts'
import { at, CREDENTIALS, find } from '../gateway/find.ts'
import { API_KEY_FLAGS, readApiKey, refuseKeyArgument } from '../gateway/secrets.ts'
import type { Row } from '../output.ts'
import {
  callRest,
  RANGE_FLAGS,
  rangeQuery,
  sendRest,
  SESSION_FLAG,
  showList,
  tokenOf,
  type List,
  type SessionInput,
} from '../platform/rest.ts'

const CREDENTIAL = { credential: { help: 'Its name, or its id' } } as const
const SCOPES = ['organization', 'user'] as const
const MODES = ['auth', 'chat', 'embeddings'] as const

const row = ({ priority, enabled, health, default_model, weight, last_error, ...credential }: Credential): Row => [
  credential.id,
  credential.name,
  credential.provider,
  credential.scope === 'user' ? 'private' : undefined,
  enabled ? health.state : 'disabled',
  enabled && health.cooldown_until !== undefined ? `until ${health.cooldown_until}` : undefined,
  default_model,
  `weight ${weight}`,
  priority === 0 ? undefined : `priority ${priority}`,
  last_error?.message,
]

export const list = defineCommand({
  flags: {
    provider: { value: 'kind', choices: KINDS, help: 'Only of this kind' },
    scope: { value: 'scope', choices: SCOPES, help: 'Only shared (organization) or own (user) ones' },
    enabled: { negatable: true, help: 'Only those that may be routed to' },
    ...RANGE_FLAGS,
    ...SESSION_FLAG,
  },
  examples: ['gateway credentials list', 'gateway credentials list --provider anthropic --output json'],
  async run(context, input) {
    const { provider, scope, enabled } = input
    const query = { ...rangeQuery(input), provider, scope, enabled }
    const call = { method: 'GET', path: CREDENTIALS.path, query }
    const answer = await callRest<List<'credentials', Credential>>(context, input, call)
    await showList(context, answer, answer.credentials, row)
  },
})

export const add = defineCommand({
  flags: {
    provider: { value: 'kind', choices: KINDS, help: 'Kind of the provider' },
    name: { value: 'name', help: 'Name for people, unique' },
    scope: { value: 'scope', choices: SCOPES, help: 'user keeps it to yourself (organization)' },
    ...API_KEY_FLAGS,
    ...CREDENTIAL_FLAGS,
    ...SESSION_FLAG,
  },
  notes: 'In a terminal it asks for what is missing, and offers to try the credential.',
  examples: [
    'gateway credentials add',
    'gateway credentials add --provider openai --name main --api-key-file openai.key',
    'gateway credentials add --provider azure-openai --name az --api-key-env AZURE_KEY --config endpoint=https://acme.openai.azure.com',
    'gateway credentials add --provider vertex --name gcp --config project=acme --config location=global --config service_account=@key.json',
  ],
  async run(context, input) {
    const { io } = context
    refuseKeyArgument(context.settings)
    tokenOf(context, input) // before anybody is asked
    const provider = await askKind(io, input.provider)
    const name = await askName(io, input.name, provider)
    const fields = await credentialBody(io, provider, {}, input)
    const key = await readApiKey(io, input)
    const body = await askMissing(io, provider, { ...fields, ...given({ name, scope: input.scope, api_key: key }) })
    const credential = await callRest<Credential>(context, input, { method: 'POST', path: CREDENTIALS.path, body })
    await context.output.answer(credential, () => [row(credential)])
    if (!canAsk(io) || !(await confirm(io, 'Try it now?'))) return
    await tried(context, input, credential, {})
  },
})

export const update = defineCommand({
  args: CREDENTIAL,
  flags: {
    name: { value: 'name', help: 'New name' },
    ...API_KEY_FLAGS,
    ...CREDENTIAL_FLAGS,
    ...SESSION_FLAG,
  },
  notes:
    "What no flag names stays as it is. An empty value clears: --default-model '', --map a=, --allow ''. A change of the " +
    'address needs every secret anew.',
  examples: ['gateway credentials update main --weight 0.5', 'gateway credentials update main --api-key-file new.key'],
  async run(context, input) {
    refuseKeyArgument(context.settings)
    const before = await find(context, input, CREDENTIALS, input.credential)
    const fields = await credentialBody(context.io, before.provider, before, input)
    const key = await readApiKey(context.io, input)
    const body = { ...fields, name: input.name ?? before.name, ...given({ api_key: key }) }
    const call = { method: 'PUT', path: at(CREDENTIALS, before.id), body }
    const credential = await callRest<Credential>(context, input, call)
    await context.output.answer(credential, () => [row(credential)])
  },
})

export const remove = defineCommand({
  args: CREDENTIAL,
  flags: { force: { help: 'Take it out of the groups that use it' }, ...SESSION_FLAG },
  examples: ['gateway credentials remove main', 'gateway credentials remove main --force'],
  async run(context, input) {
    const { id, name } = await find(context, input, CREDENTIALS, input.credential)
    const query = { force: input.force }
    await sendRest(context, input, { method: 'DELETE', path: at(CREDENTIALS, id), query })
    context.output.done(name, 'removed')
  },
})

const turning = (verb: 'enable' | 'disable') =>
  defineCommand({
    args: CREDENTIAL,
    flags: SESSION_FLAG,
    examples: [`gateway credentials ${verb} main`],
    async run(context, input) {
      const { id } = await find(context, input, CREDENTIALS, input.credential)
      const credential = await callRest<Credential>(context, input, { method: 'POST', path: at(CREDENTIALS, id, verb) })
      await context.output.answer(credential, () => [row(credential)])
    },
  })

export const enable = turning('enable')
export const disable = turning('disable')

export const test = defineCommand({
  args: CREDENTIAL,
  flags: {
    mode: { value: 'mode', choices: MODES, help: 'auth costs nothing; chat and embeddings make a small call (auth)' },
    model: { value: 'model', help: 'Model to call' },
    ...SESSION_FLAG,
  },
  notes: 'Exit code 4 when the provider says no.',
  examples: ['gateway credentials test main', 'gateway credentials test main --mode chat --model gpt-5-mini'],
  async run(context, input) {
    const credential = await find(context, input, CREDENTIALS, input.credential)
    await tried(context, input, credential, given({ mode: input.mode, model: input.model }))
  },
})

/** @throws CliError when the provider says no */
async function tried(context: Context, input: SessionInput, { id, name }: Credential, body: object): Promise<void> {
  const call = { method: 'POST', path: at(CREDENTIALS, id, 'test'), body }
  const result = await callRest<TestResult>(context, input, call, 'ok')
  const { ok, mode, model, latency_ms: ms, models, error, status } = result
  await context.output.answer(result, () => [
    [name, ok ? 'works' : 'does not work', mode, model, `${Math.round(ms)} ms`, models && `${models.length} models`],
  ])
  if (!ok)
    throw new CliError(EXIT.failure, `${error?.message ?? 'the test failed'}${status ? ` (status ${status})` : ''}`)
}
