import { FALLBACK_CLASSES, type Alias, type AliasMember, type Credential } from '../../gateway/model.ts'
import { defineCommand, type Context } from '../command.ts'
import { usageError } from '../exit.ts'
import { given, listOf, numberOf } from '../gateway/fields.ts'
import { at, CREDENTIALS, find, GROUPS, listAll, pick } from '../gateway/find.ts'
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

const GROUP = { group: { help: 'Its name, or its id' } } as const

const FIELD_FLAGS = {
  strategy: { value: 'strategy', choices: ['weighted', 'ordered'], help: 'How members are picked (weighted)' },
  member: {
    value: 'member',
    repeat: true,
    help: 'Credential, then as needed ,model=m ,weight=n ,priority=n; in order',
  },
  'fallback-model': { value: 'name', repeat: true, help: 'Tried in turn after the members' },
  'fallback-on': {
    value: 'classes',
    list: true,
    choices: FALLBACK_CLASSES,
    help: 'Which failures go on (connect,transient,rate,auth,missing)',
  },
  'cache-ttl': { value: 'seconds', integer: true, help: 'Keep answers so long; 0 ends that' },
  'max-output-tokens': { value: 'n', integer: true, help: 'Cap on every answer; 0 ends that' },
  enabled: {
    negatable: true,
    help: 'May be called; a disabled one is as if it were not there: a credential with a model of its name may serve it',
  },
} as const

interface FieldInput {
  strategy: string | undefined
  member: readonly string[]
  'fallback-model': readonly string[]
  'fallback-on': readonly string[] | undefined
  'cache-ttl': number | undefined
  'max-output-tokens': number | undefined
  enabled: boolean | undefined
}

const row = ({ id, name, scope, strategy, members, fallback_models: fallbacks, enabled }: Alias): Row => [
  id,
  name,
  scope === 'user' ? 'private' : undefined,
  strategy,
  members
    .map(({ credential_id, model }) => (model === undefined ? credential_id : `${credential_id}:${model}`))
    .join(' '),
  fallbacks.length > 0 ? `then ${fallbacks.join(', ')}` : undefined,
  enabled ? undefined : 'disabled',
]

export const list = defineCommand({
  flags: { ...RANGE_FLAGS, ...SESSION_FLAG },
  examples: ['gateway groups list'],
  async run(context, input) {
    const call = { method: 'GET', path: GROUPS.path, query: rangeQuery(input) }
    const answer = await callRest<List<'model_groups', Alias>>(context, input, call)
    await showList(context, answer, answer.model_groups, row)
  },
})

export const add = defineCommand({
  flags: {
    name: { value: 'name', required: true, help: 'What clients send as the model' },
    scope: { value: 'scope', choices: ['organization', 'user'], help: 'user keeps it to yourself (organization)' },
    ...FIELD_FLAGS,
    ...SESSION_FLAG,
  },
  examples: [
    'gateway groups add --name fast --member main,model=gpt-5-mini,weight=3 --member az,model=gpt-5-mini',
    'gateway groups add --name best --strategy ordered --member claude,model=claude-opus-4-7 --member main,model=gpt-5 --fallback-model fast',
  ],
  async run(context, input) {
    const body = { ...(await bodyOf(context, input, {}, input)), ...given({ name: input.name, scope: input.scope }) }
    const group = await callRest<Alias>(context, input, { method: 'POST', path: GROUPS.path, body })
    await context.output.answer(group, () => [row(group)])
  },
})

export const update = defineCommand({
  args: GROUP,
  flags: { name: { value: 'name', help: 'New name' }, ...FIELD_FLAGS, ...SESSION_FLAG },
  notes: "What no flag names stays as it is; members that are named take the place of all. --fallback-model '' clears.",
  examples: ['gateway groups update fast --member main --member az', 'gateway groups update fast --cache-ttl 300'],
  async run(context, input) {
    const before = await find(context, input, GROUPS, input.group)
    const body = { ...(await bodyOf(context, input, before, input)), name: input.name ?? before.name }
    const group = await callRest<Alias>(context, input, { method: 'PUT', path: at(GROUPS, before.id), body })
    await context.output.answer(group, () => [row(group)])
  },
})

export const remove = defineCommand({
  args: GROUP,
  flags: SESSION_FLAG,
  examples: ['gateway groups remove fast'],
  async run(context, input) {
    const { id, name } = await find(context, input, GROUPS, input.group)
    await sendRest(context, input, { method: 'DELETE', path: at(GROUPS, id) })
    context.output.done(name, 'removed')
  },
})

async function bodyOf(context: Context, session: SessionInput, before: Partial<Alias>, input: FieldInput) {
  const credentials = input.member.length > 0 ? await listAll(context, session, CREDENTIALS) : []
  const cap = (flag: 'cache-ttl' | 'max-output-tokens', old: number | undefined): number | null | undefined =>
    input[flag] === 0 ? null : (input[flag] ?? old)
  return given({
    strategy: input.strategy ?? before.strategy,
    members: listOf(input.member, before.members ?? [], (text) => memberOf(text, credentials)),
    fallback_models: listOf(input['fallback-model'], before.fallback_models ?? [], (text) => text),
    fallback_on: input['fallback-on'] ?? before.fallback_on,
    cache_ttl: cap('cache-ttl', before.cache_ttl),
    max_output_tokens: cap('max-output-tokens', before.max_output_tokens),
    enabled: input.enabled ?? before.enabled,
  })
}

/** `main,model=gpt-5,weight=2` */
function memberOf(text: string, credentials: readonly Credential[]): AliasMember {
  const [name = '', ...pairs] = text.split(',').map((part) => part.trim())
  const member: AliasMember = { credential_id: pick(credentials, CREDENTIALS, name).id }
  for (const pair of pairs) {
    const [, key, value = ''] = /^(model|weight|priority)=(.+)$/.exec(pair) ?? []
    if (key === 'model') member.model = value
    else if (key === 'weight' || key === 'priority') member[key] = numberOf(`member ${key}`, value)
    else throw usageError(`'${pair}' is none of model=, weight=, priority=`, 'As in --member main,model=gpt-5,weight=2')
  }
  return member
}
