// The page of usage: charts, sums, budgets, and each request.
import { chart, legend } from './gateway-charts.js'
import { action } from './gateway-dialog.js'
import { el, empty, ms, number, select, table, time, under, usd } from './gateway-elements.js'
import { costOf, outcomeOf, showRequest } from './gateway-request.js'
import { page } from './gateway.js'
import { call, exportLink, listAll, peopleOf, query } from './gateway-session.js'

const HOUR = 3_600_000
/** Name, how far back, and the width of a bar. */
const RANGES = {
  hour: [HOUR, 'minute'],
  day: [24 * HOUR, 'hour'],
  week: [7 * 24 * HOUR, 'hour'],
  month: [30 * 24 * HOUR, 'day'],
}
const GROUPS = [['model'], ['provider'], ['credential'], ['key'], ['user'], ['surface']]
const OUTCOMES = [
  ['', 'all requests'],
  ['ok', 'answered'],
  ['error', 'failed'],
  ['rejected', 'refused'],
  ['client_closed', 'left by the client'],
  ['cached', 'from the cache'],
]
const SUMS = [
  ['Group'],
  ['Requests', 'num'],
  ['Failed', 'num'],
  ['Refused', 'num'],
  ['Tokens in', 'num'],
  ['Tokens out', 'num'],
  ['Cost', 'num'],
]
const BUDGETS = [['Budget of'], ['Window'], ['Limit', 'num'], ['Spent', 'num'], ['Reserved', 'num'], ['Used']]
const REQUESTS = [
  ['Time, UTC'],
  ['Model', 'mid'],
  ['Served by', 'mid'],
  ['Outcome'],
  ['Tries', 'num'],
  ['In', 'num'],
  ['Out', 'num'],
  ['First token', 'num'],
  ['Total', 'num'],
  ['Cost', 'num'],
]

const asked = { range: 'day', group_by: 'model', outcome: '' }
let pages = []

const tile = (label, value, more) => el('div', {}, el('dt', {}, label), el('dd', {}, el('b', {}, value), under(more)))

function tiles(totals, cost) {
  const unknown = [
    cost.unknown_price_requests > 0 && `${number(cost.unknown_price_requests)} of unknown price`,
    cost.no_usage_requests > 0 && `${number(cost.no_usage_requests)} without usage`,
  ].filter(Boolean)
  return el(
    'dl',
    { class: 'panel tiles' },
    tile('Requests', number(totals.requests), `${number(totals.errors)} failed, ${number(totals.rejected)} refused`),
    tile(
      'Tokens',
      number(totals.input_tokens + totals.output_tokens),
      `${number(totals.input_tokens)} in, ${number(totals.output_tokens)} out`,
    ),
    tile(
      'Cost',
      cost.enabled ? usd(cost.total_usd) : 'not tracked',
      unknown.length > 0 ? `and unknown: ${unknown.join(', ')}` : 'all of it known',
    ),
    tile('Duration', ms(totals.duration_ms?.p50), `p95 ${ms(totals.duration_ms?.p95)}`),
    tile('First token', ms(totals.first_token_ms?.p50), `p95 ${ms(totals.first_token_ms?.p95)}`),
    tile('Gateway itself', ms(totals.overhead_ms?.p50), `p95 ${ms(totals.overhead_ms?.p95)}`),
  )
}

const nameIn = (known, by, value) => {
  if (value === null) return `no ${by}`
  return known ? (known.get(value) ?? `${by} ${value}`) : String(value)
}

/** What a group is called by people. */
const namer =
  (names) =>
  ({ group }) =>
    Object.entries(group)
      .map(([by, value]) => nameIn(names[by], by, value))
      .join(' / ')

function sums(series, cost, nameOf) {
  const rows = new Map()
  for (const row of series) {
    const sum = rows.get(nameOf(row)) ?? {
      requests: 0,
      errors: 0,
      rejected: 0,
      input_tokens: 0,
      output_tokens: 0,
      cost_unknown_requests: 0,
    }
    for (const name of Object.keys(sum)) sum[name] += row[name]
    rows.set(nameOf(row), sum)
  }
  const costs = new Map(cost.breakdown.map((row) => [nameOf(row), row.cost_usd]))
  const shown = [...rows].sort(([, a], [, b]) => b.requests - a.requests)
  const costOfSum = (name, { cost_unknown_requests: unknown }) => {
    if (!cost.enabled) return '–'
    const known = costs.get(name) ?? null
    return el('span', {}, usd(known), known !== null && unknown > 0 && under(`and ${number(unknown)} unknown`))
  }
  return table(
    SUMS,
    shown.map(([name, sum]) => [
      name,
      ...[sum.requests, sum.errors, sum.rejected, sum.input_tokens, sum.output_tokens].map(number),
      costOfSum(name, sum),
    ]),
    'By group',
  )
}

const budgets = (list, names) =>
  table(
    BUDGETS,
    list.map(({ scope, id, limit_usd: limit, spent_usd: spent, reserved_usd: reserved, window, resets_at: reset }) => [
      scope === 'organization' ? 'the organization' : `${scope} ${names[scope]?.get(id) ?? id ?? ''}`,
      el('span', {}, window === 'total' ? 'all time' : window, reset && under('until ', time(reset))),
      usd(limit),
      usd(spent),
      usd(reserved),
      el('meter', {
        min: 0,
        max: Number(limit) || 1,
        value: Number(spent),
        'aria-label': `${usd(spent)} of ${usd(limit)}`,
      }),
    ]),
    'Budgets',
  )

const requestRow = (names, me) => (row) => [
  action(row.started_at.slice(5, 19).replace('T', ' '), () => showRequest(row, names, me), { kind: 'link' }),
  row.model_requested,
  el(
    'span',
    {},
    row.model_used ?? '–',
    row.credential_id !== undefined && under(names.credential.get(row.credential_id) ?? row.provider),
  ),
  outcomeOf(row),
  String(row.attempts.length),
  number(row.input_tokens),
  number(row.output_tokens),
  ms(row.first_token_ms),
  ms(row.duration_ms),
  costOf(row),
]

/** A choice that shows the page anew. */
function choice(label, name, options, show) {
  const chosen = select(name, options, asked[name])
  chosen.addEventListener('change', () => {
    asked[name] = chosen.value
    pages = []
    void show()
  })
  return el('label', {}, label, chosen)
}

const RANGE_NAMES = Object.keys(RANGES).map((name) => [name])

/** Names by id; of those that are called the same, each with its id. */
function byId(rows) {
  const counts = new Map()
  for (const { name } of rows) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map(rows.map(({ id, name }) => [id, counts.get(name) > 1 ? `${name} (${id})` : name]))
}

async function namesOf(me) {
  const [credentials, keys, user] = await Promise.all([
    listAll('credentials', 'credentials'),
    listAll('keys', 'keys'),
    peopleOf(me),
  ])
  return { credential: byId(credentials), key: byId(keys), user }
}

page(async ({ me, show }) => {
  const [span, interval] = RANGES[asked.range]
  const now = Date.now()
  const range = { from: new Date(now - span).toISOString() }
  const [analytics, cost, { usage, next_after_id: next }, names] = await Promise.all([
    call('GET', query('analytics', { ...range, interval, group_by: asked.group_by })),
    call('GET', query('cost', { ...range, group_by: asked.group_by })),
    call('GET', query('usage', { ...range, outcome: asked.outcome, after_id: pages.at(-1), limit: 25 })),
    namesOf(me),
  ])
  const nameOf = namer(names)
  const groups = [...new Set(analytics.series.map(nameOf))]
  const draw = (title, valueOf) => chart(title, analytics, groups, nameOf, valueOf)
  const turn = (change) => async () => {
    change()
    await show()
  }
  return {
    buttons: ['csv', 'jsonl'].map((format) =>
      exportLink(`Export ${format.toUpperCase()}`, query('usage/export', { ...range, format })),
    ),
    content: [
      el(
        'div',
        { class: 'bar' },
        el(
          'form',
          { class: 'inline' },
          choice('Last ', 'range', RANGE_NAMES, show),
          choice('By ', 'group_by', GROUPS, show),
        ),
        action('Refresh', show),
      ),
      tiles(analytics.totals, cost),
      groups.length === 0 &&
        empty('Nothing in this time', 'Each call through the gateway shows here, refused ones too.'),
      groups.length > 0 &&
        el(
          'div',
          { class: 'charts' },
          draw('Requests', (row) => row.requests),
          draw('Tokens out', (row) => row.output_tokens),
          draw('Known cost, USD', (row) => Number(row.cost_usd ?? 0)),
        ),
      groups.length > 0 && legend(groups),
      groups.length > 0 && sums(analytics.series, cost, nameOf),
      cost.budgets.length > 0 && budgets(cost.budgets, names),
      el(
        'div',
        { class: 'bar' },
        el('h2', {}, 'Requests, newest first'),
        el('form', { class: 'inline' }, choice('Show ', 'outcome', OUTCOMES, show)),
      ),
      usage.length === 0
        ? empty('No such request', `Nothing in the last ${asked.range}.`)
        : table(REQUESTS, usage.map(requestRow(names, me)), 'Requests'),
      el(
        'div',
        { class: 'pager' },
        pages.length > 0 &&
          action(
            'Newer',
            turn(() => pages.pop()),
          ),
        next !== '' &&
          action(
            'Older',
            turn(() => pages.push(next)),
          ),
      ),
    ],
  }
})
