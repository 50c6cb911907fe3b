import { path } from '../../client/transport.ts'
import { WINDOWS, type Budget, type Settings } from '../../gateway/model.ts'
import { defineCommand } from '../command.ts'
import { budgetOf, given, listOf } from '../gateway/fields.ts'
import type { Row } from '../output.ts'
import { callRest, sendRest, SESSION_FLAG } from '../platform/rest.ts'

const SETTINGS = path`/rest/v1/llm-gateway/settings`
const METRICS_TOKEN = path`/rest/v1/llm-gateway/metrics-token`
const UNKNOWN = ['deny', 'allow'] as const

type Value = Settings[keyof Settings]

function shown(value: Value): string {
  if (value === null) return 'none'
  if (Array.isArray(value)) return value.join(', ') || 'none'
  return typeof value === 'object' ? `${value.limit_usd} USD a ${value.window}` : String(value)
}

const rows = (settings: Settings): Row[] =>
  Object.entries<Value>({ ...settings }).map(([name, value]) => [name, shown(value)])

export const settings = defineCommand({
  flags: {
    'cost-tracking': { negatable: true, help: 'Know what calls cost' },
    budget: { value: 'usd', help: "Most that the organization may spend; '' for no budget" },
    'budget-window': { value: 'window', choices: WINDOWS, help: 'When it begins anew (month)' },
    'budget-unknown-price': { value: 'what', choices: UNKNOWN, help: 'Models without a price (deny)' },
    'user-budget': { value: 'usd', help: "Most that each user may spend; '' for no budget" },
    'user-budget-window': { value: 'window', choices: WINDOWS, help: 'When it begins anew (month)' },
    'user-budget-unknown-price': { value: 'what', choices: UNKNOWN, help: 'Models without a price (deny)' },
    'content-logging': { negatable: true, help: 'Keep prompts and answers, sealed, for admins' },
    'content-retention-days': { value: 'days', integer: true, help: 'So long (7)' },
    'blocked-model': { value: 'name', repeat: true, help: "Nobody may call it; `*` may stand at the end; '' for none" },
    'max-request-bytes': { value: 'bytes', integer: true, help: "Largest body; 0 for the server's own limit" },
    'usage-retention-days': { value: 'days', integer: true, help: 'How long usage records are kept (90)' },
    'private-credentials': { negatable: true, help: 'Users may have credentials of their own' },
    'member-keys': { negatable: true, help: 'Members may make keys for themselves' },
    'cache-scope': { value: 'scope', choices: ['caller', 'organization'], help: 'Who shares cached answers (caller)' },
    ...SESSION_FLAG,
  },
  notes: 'Without a flag it shows them. What no flag names stays as it is.',
  examples: [
    'gateway settings',
    'gateway settings --budget 500 --budget-window month',
    'gateway settings --no-member-keys',
  ],
  async run(context, input) {
    const before = await callRest<Settings>(context, input, { method: 'GET', path: SETTINGS }, 'cost_tracking')
    const bytes = input['max-request-bytes']
    const changes = given({
      cost_tracking: input['cost-tracking'],
      content_logging: input['content-logging'],
      content_retention_days: input['content-retention-days'],
      max_request_bytes: bytes === 0 ? null : bytes,
      usage_retention_days: input['usage-retention-days'],
      private_credentials: input['private-credentials'],
      member_keys: input['member-keys'],
      cache_scope: input['cache-scope'],
      ...(input['blocked-model'].length > 0 && {
        blocked_models: listOf(input['blocked-model'], before.blocked_models, (name) => name),
      }),
      ...budgetChange('budget', before.budget, input.budget, input['budget-window'], input['budget-unknown-price']),
      ...budgetChange(
        'user_budget',
        before.user_budget,
        input['user-budget'],
        input['user-budget-window'],
        input['user-budget-unknown-price'],
      ),
    })
    const body = { ...before, ...changes }
    const isChange = Object.keys(changes).length > 0
    const after = isChange
      ? await callRest<Settings>(context, input, { method: 'PUT', path: SETTINGS, body }, 'cost_tracking')
      : before
    await context.output.answer(after, () => rows(after))
  },
})

function budgetChange(
  field: 'budget' | 'user_budget',
  before: Budget | null,
  limit: string | undefined,
  window: string | undefined,
  unknown: string | undefined,
): Record<string, unknown> {
  if (limit === undefined && window === undefined && unknown === undefined) return {}
  return { [field]: budgetOf(before, { limit, window, unknown }) }
}

interface TokenState {
  exists: boolean
  last4?: string
  created_at?: string
  last_used_at?: string
}

export const metricsToken = defineCommand({
  args: { action: { optional: true, choices: ['show', 'create', 'revoke'], help: 'What to do about it (show)' } },
  flags: SESSION_FLAG,
  notes: 'With it, GET /metrics/ai-gateway shows the series of the organization. A new token ends the old one.',
  examples: ['gateway metrics-token', 'gateway metrics-token create', 'gateway metrics-token revoke'],
  async run(context, input) {
    const { output } = context
    if (input.action === 'revoke') {
      await sendRest(context, input, { method: 'DELETE', path: METRICS_TOKEN })
      return output.done('metrics token', 'revoked')
    }
    if (input.action === 'create') {
      const call = { method: 'POST', path: METRICS_TOKEN, body: {} }
      const made = await callRest<{ token: string; created_at: string }>(context, input, call, 'token')
      await output.answer(made, () => [[made.token]])
      return output.note('This token is not shown again. A scraper sends it as bearer to /metrics/ai-gateway.')
    }
    const state = await callRest<TokenState>(context, input, { method: 'GET', path: METRICS_TOKEN }, 'exists')
    const { exists, last4, created_at: made, last_used_at: used } = state
    await output.answer(state, () => [exists ? [`…${last4}`, `made ${made}`, used && `used ${used}`] : ['none']])
  },
})
