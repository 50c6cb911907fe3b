import { path } from '../../client/transport.ts'
import type { AuditRecord } from '../../gateway/audit-chain.ts'
import type { AuditVerification } from '../../gateway/audit.ts'
import type { CostAnswer } from '../../gateway/metering/costs.ts'
import { KINDS, OUTCOMES, SURFACES, type UsageRecord } from '../../gateway/model.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import type { Row } from '../output.ts'
import { callRest, RANGE_FLAGS, rangeQuery, SESSION_FLAG, showList, type List } from '../platform/rest.ts'

const TIME_FLAGS = {
  from: { value: 'time', help: 'From this time on, as 2026-11-01' },
  to: { value: 'time', help: 'Until before this time' },
} as const

const FILTER_FLAGS = {
  ...TIME_FLAGS,
  'user-id': { value: 'id', integer: true, help: 'Only of this user' },
  'key-id': { value: 'id', integer: true, help: 'Only with this key' },
  'credential-id': { value: 'id', integer: true, help: 'Only through this credential' },
  provider: { value: 'kind', choices: KINDS, help: 'Only of this kind of provider' },
  model: { value: 'name', help: 'Only of this model' },
  surface: { value: 'surface', choices: SURFACES, help: 'Only of this surface' },
} as const

interface FilterInput {
  from: string | undefined
  to: string | undefined
  'user-id': number | undefined
  'key-id': number | undefined
  'credential-id': number | undefined
  provider: string | undefined
  model: string | undefined
  surface: string | undefined
}

const filterOf = (input: FilterInput) => ({
  from: input.from,
  to: input.to,
  user_id: input['user-id'],
  key_id: input['key-id'],
  credential_id: input['credential-id'],
  provider: input.provider,
  model: input.model,
  surface: input.surface,
})

/** Money is unknown, or a text. */
const usd = (cost: string | null): string => (cost === null ? 'cost unknown' : `${cost} USD`)

const usageRow = (record: UsageRecord): Row => [
  record.id,
  record.started_at,
  record.outcome === 'ok' ? 'ok' : `${record.outcome} ${record.error_code ?? record.status}`,
  record.model_used ?? record.model_requested,
  record.provider,
  record.input_tokens === null ? undefined : `${record.input_tokens}+${record.output_tokens ?? 0} tokens`,
  usd(record.cost_usd),
  `${Math.round(record.duration_ms)} ms`,
]

export const usage = defineCommand({
  flags: {
    ...FILTER_FLAGS,
    'request-id': { value: 'id', help: 'Only this request' },
    outcome: { value: 'outcome', choices: OUTCOMES, help: 'Only what ended so' },
    ...RANGE_FLAGS,
    ...SESSION_FLAG,
  },
  notes: 'The newest first. Members see their own calls, admins all.',
  examples: ['gateway usage', 'gateway usage --from 2026-11-01 --outcome error', 'gateway usage --output jsonl'],
  async run(context, input) {
    const query = { ...rangeQuery(input), ...filterOf(input), request_id: input['request-id'], outcome: input.outcome }
    const call = { method: 'GET', path: path`/rest/v1/llm-gateway/usage`, query }
    const answer = await callRest<List<'usage', UsageRecord>>(context, input, call)
    await showList(context, answer, answer.usage, usageRow)
  },
})

export const cost = defineCommand({
  flags: {
    ...FILTER_FLAGS,
    'group-by': {
      value: 'fields',
      list: true,
      choices: ['provider', 'model', 'credential', 'user', 'key', 'surface'],
      help: 'One or two (provider,model)',
    },
    ...SESSION_FLAG,
  },
  examples: ['gateway cost', 'gateway cost --from 2026-11-01 --group-by user'],
  async run(context, input) {
    const query = { ...filterOf(input), group_by: input['group-by']?.join(',') }
    const call = { method: 'GET', path: path`/rest/v1/llm-gateway/cost`, query }
    const answer = await callRest<CostAnswer>(context, input, call, 'breakdown')
    await context.output.answer(answer, () => [
      ...answer.breakdown.map(({ group, cost_usd, requests }): Row => [
        groupText(group),
        usd(cost_usd),
        counted(requests),
      ]),
      ['total', answer.enabled ? usd(answer.total_usd) : 'costs are not tracked', unknownText(answer)],
      ...answer.budgets.map(({ scope, id, spent_usd, limit_usd, window, resets_at }): Row => [
        `budget of ${scope}${id === undefined ? '' : ` ${id}`}`,
        `${spent_usd} of ${limit_usd} USD`,
        window,
        resets_at && `anew ${resets_at}`,
      ]),
    ])
  },
})

/** Names by themselves, numbers with what they number; requests that a group leaves out are refused ones, but for keys and users. */
const groupText = (group: object): string => {
  const parts = Object.entries(group).map(([by, value]: [string, unknown]) => {
    if (typeof value === 'string') return value
    if (typeof value === 'number') return `${by} ${value}`
    return by === 'key' || by === 'user' ? `no ${by}` : 'none was called'
  })
  return [...new Set(parts)].join(' ')
}

const unknownText = ({ unknown_price_requests: unpriced, no_usage_requests: uncounted }: CostAnswer): string =>
  unpriced + uncounted > 0 ? `and ${counted(unpriced + uncounted)} of unknown cost` : ''

const counted = (requests: number): string => `${requests} ${requests === 1 ? 'request' : 'requests'}`

const auditRow = ({ id, at, actor, action, target, changes, count }: AuditRecord): Row => [
  id,
  at,
  actor.id === undefined ? actor.type : `${actor.type} ${actor.id}`,
  action,
  `${target.type} ${target.name ?? target.id}`,
  changes && Object.keys(changes).join(' '),
  count > 1 ? `${count} times` : undefined,
]

export const audit = defineCommand({
  flags: {
    ...TIME_FLAGS,
    action: { value: 'action', help: 'Only this act, as credential.update' },
    'actor-id': { value: 'id', integer: true, help: 'Only by this user or key' },
    'target-type': { value: 'type', help: 'Only of such records' },
    'target-id': { value: 'id', help: 'Only of this record' },
    verify: { help: 'Prove that no record was changed or taken away' },
    ...RANGE_FLAGS,
    ...SESSION_FLAG,
  },
  notes: 'For admins. --verify leaves with exit code 4 when the chain is broken.',
  examples: ['gateway audit', 'gateway audit --action credential.update --target-id 3', 'gateway audit --verify'],
  async run(context, input) {
    if (input.verify) {
      const call = { method: 'GET', path: path`/rest/v1/llm-gateway/audit/verify` }
      const proof = await callRest<AuditVerification>(context, input, call, 'ok')
      const { ok, records, head, first_bad_seq: bad, reason } = proof
      await context.output.answer(proof, () => [[ok ? 'whole' : 'broken', `${records} records`, head]])
      if (!ok)
        throw new CliError(EXIT.failure, `the chain is broken at record ${bad ?? '?'}: ${reason ?? 'it does not fit'}`)
      return
    }
    const query = {
      ...rangeQuery(input),
      from: input.from,
      to: input.to,
      action: input.action,
      actor_id: input['actor-id'],
      target_type: input['target-type'],
      target_id: input['target-id'],
    }
    const call = { method: 'GET', path: path`/rest/v1/llm-gateway/audit`, query }
    const answer = await callRest<List<'audit', AuditRecord>>(context, input, call)
    await showList(context, answer, answer.audit, auditRow)
  },
})
