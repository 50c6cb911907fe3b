import { WINDOWS, type VirtualKey } from '../../gateway/model.ts'
import { defineCommand, type Context } from '../command.ts'
import { budgetOf, given, listOf, withNumbers } from '../gateway/fields.ts'
import { at, CREDENTIALS, find, KEYS, listAll, pick } from '../gateway/find.ts'
import type { Row } from '../output.ts'
import {
  callRest,
  RANGE_FLAGS,
  rangeQuery,
  sendRest,
  SESSION_FLAG,
  showList,
  type List,
  type SessionInput,
} from '../platform/rest.ts'

const KEY = { key: { help: 'Its name, or its id' } } as const

const FIELD_FLAGS = {
  allow: { value: 'model', repeat: true, help: 'Only these models; `*` may stand at the end' },
  credential: { value: 'credential', repeat: true, help: 'Only these credentials' },
  budget: { value: 'usd', help: "Most that it may spend; '' for no budget" },
  'budget-window': { value: 'window', choices: WINDOWS, help: 'When the budget begins anew (month)' },
  'budget-unknown-price': { value: 'what', choices: ['deny', 'allow'], help: 'Models without a price (deny)' },
  limit: { value: 'k=n', repeat: true, help: 'requests_per_minute, tokens_per_minute, max_concurrency' },
  'max-output-tokens': { value: 'n', integer: true, help: 'Cap on every answer; 0 ends that' },
  'expires-at': { value: 'time', help: "When it ends, as 2027-01-31; '' for never" },
  enabled: { negatable: true, help: 'May be used' },
} as const

interface FieldInput {
  allow: readonly string[]
  credential: readonly string[]
  budget: string | undefined
  'budget-window': string | undefined
  'budget-unknown-price': string | undefined
  limit: readonly string[]
  'max-output-tokens': number | undefined
  'expires-at': string | undefined
  enabled: boolean | undefined
}

type NewKey = VirtualKey & { token: string }

const row = ({ id, name, prefix, last4, user_id, budget, spent_usd, expires_at, enabled }: VirtualKey): Row => [
  id,
  name,
  `${prefix}…${last4}`,
  user_id === undefined ? undefined : `user ${user_id}`,
  budget && `${spent_usd} of ${budget.limit_usd} USD a ${budget.window}`,
  expires_at && `until ${expires_at}`,
  enabled ? undefined : 'disabled',
]

export const list = defineCommand({
  flags: { ...RANGE_FLAGS, ...SESSION_FLAG },
  examples: ['gateway keys list'],
  async run(context, input) {
    const call = { method: 'GET', path: KEYS.path, query: rangeQuery(input) }
    const answer = await callRest<List<'keys', VirtualKey>>(context, input, call)
    await showList(context, answer, answer.keys, row)
  },
})

export const add = defineCommand({
  flags: {
    name: { value: 'name', required: true, help: 'Name for people' },
    'user-id': { value: 'id', integer: true, help: "With this user's private credentials, and gone with the user" },
    ...FIELD_FLAGS,
    ...SESSION_FLAG,
  },
  notes: 'The token is shown this once; with --quiet nothing but the token.',
  examples: [
    'gateway keys add --name ci --budget 20 --budget-window month',
    "gateway keys add --name ada --user-id 1 --allow 'claude-*'",
  ],
  async run(context, input) {
    const fields = await bodyOf(context, input, {}, input)
    const body = { ...fields, ...given({ name: input.name, user_id: input['user-id'] }) }
    await showToken(context, await callRest<NewKey>(context, input, { method: 'POST', path: KEYS.path, body }, 'token'))
  },
})

export const update = defineCommand({
  args: KEY,
  flags: { name: { value: 'name', help: 'New name' }, ...FIELD_FLAGS, ...SESSION_FLAG },
  notes: "What no flag names stays as it is. An empty value clears: --allow '', --budget ''.",
  examples: ['gateway keys update ci --limit requests_per_minute=60', 'gateway keys update ci --no-enabled'],
  async run(context, input) {
    const before = await find(context, input, KEYS, input.key)
    const fields = await bodyOf(context, input, before, input)
    const body = { ...fields, ...given({ name: input.name ?? before.name, user_id: before.user_id }) }
    const key = await callRest<VirtualKey>(context, input, { method: 'PUT', path: at(KEYS, before.id), body })
    await context.output.answer(key, () => [row(key)])
  },
})

export const remove = defineCommand({
  args: KEY,
  flags: SESSION_FLAG,
  examples: ['gateway keys remove ci'],
  async run(context, input) {
    const { id, name } = await find(context, input, KEYS, input.key)
    await sendRest(context, input, { method: 'DELETE', path: at(KEYS, id) })
    context.output.done(name, 'removed')
  },
})

export const rotate = defineCommand({
  args: KEY,
  flags: {
    'grace-seconds': { value: 'n', integer: true, help: 'Older tokens stay good so long at most, 86400 at most (0)' },
    ...SESSION_FLAG,
  },
  notes: 'Makes a new token, which is shown this once; with --quiet nothing but the token.',
  examples: ['gateway keys rotate ci --grace-seconds 3600'],
  async run(context, input) {
    const { id } = await find(context, input, KEYS, input.key)
    const body = given({ grace_seconds: input['grace-seconds'] })
    const call = { method: 'POST', path: at(KEYS, id, 'rotate'), body }
    await showToken(context, await callRest<NewKey>(context, input, call, 'token'))
  },
})

async function showToken({ output, settings }: Context, key: NewKey): Promise<void> {
  await output.answer(key, () => [settings.quiet ? [key.token] : [key.id, key.name, key.token]])
  output.note('This token is not shown again. Programs send it as their API key.')
}

async function bodyOf(context: Context, session: SessionInput, before: Partial<VirtualKey>, input: FieldInput) {
  const credentials = input.credential.length > 0 ? await listAll(context, session, CREDENTIALS) : []
  const { budget: limit, 'budget-window': window, 'budget-unknown-price': unknown, 'max-output-tokens': cap } = input
  return given({
    allowed_models: listOf(input.allow, before.allowed_models ?? [], (text) => text),
    allowed_credentials: listOf(
      input.credential,
      before.allowed_credentials ?? [],
      (text) => pick(credentials, CREDENTIALS, text).id,
    ),
    budget: budgetOf(before.budget, { limit, window, unknown }),
    limits: withNumbers('limit', { ...before.limits }, input.limit),
    max_output_tokens: cap === 0 ? null : (cap ?? before.max_output_tokens),
    expires_at: input['expires-at'] ?? before.expires_at,
    enabled: input.enabled ?? before.enabled,
  })
}
