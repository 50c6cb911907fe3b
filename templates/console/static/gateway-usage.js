// The page of usage: charts, sums, budgets, and each request.
import { chart, coloured, legend } from './gateway-charts.js'
import { action, notice } from './gateway-dialog.js'
import { el, empty, input, ms, number, select, table, under, usd, utc } from './gateway-elements.js'
import { costOf, outcomeOf, showRequest } from './gateway-request.js'
import { listing } from './gateway-listing.js'
import { chosen, keepChosen, page } from './gateway.js'
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

/** Rows of the sums and of the budgets: the requests stand below them. */
const STEP = 15

const asked = chosen({ range: 'day', group_by: 'model', outcome: '', request_id: '' })
if (!Object.hasOwn(RANGES, asked.range)) asked.range = 'day'
for (const [name, options] of Object.entries({ group_by: GROUPS, outcome: OUTCOMES })) {
  if (!options.some(([value]) => value === asked[name])) asked[name] = options[0][0]
}
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
      .join(' / ') || 'all'

/** Too many groups for bars of an hour are told apart by days, and too many for those not at all. */
async function analyticsOf(range, interval) {
  for (const width of new Set([interval, 'day'])) {
    try {
      return await call('GET', query('analytics', { ...range, interval: width, group_by: asked.group_by }))
    } catch (error) {
      if (error.details?.field !== 'group_by') throw error
    }
  }
  return { ...(await call('GET', query('analytics', { ...range, interval }))), isWhole: true }
}

function summed(series, nameOf) {
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
  return rows
}

function sums({ series, isWhole }, cost, nameOf) {
  const rows = isWhole ? new Map(cost.breakdown.map((row) => [nameOf(row), row])) : summed(series, nameOf)
  const costs = new Map(cost.breakdown.map((row) => [nameOf(row), row.cost_usd]))
  const shown = [...rows].sort(([, a], [, b]) => b.requests - a.requests)
  const costOfSum = (name, { cost_unknown_requests: unknown }) => {
    if (!cost.enabled) return '–'
    const known = costs.get(name) ?? null
    return el('span', {}, usd(known), known !== null && unknown > 0 && under(`and ${number(unknown)} unknown`))
  }
  return listing(SUMS, shown, {
    name: 'By group',
    step: STEP,
    textOf: ([name]) => name,
    rowOf: ([name, sum]) => [
      name,
      ...[sum.requests, sum.errors, sum.rejected, sum.input_tokens, sum.output_tokens].map(number),
      costOfSum(name, sum),
    ],
  })
}

function budgets(list, names) {
  const ownerOf = ({ scope, id }) =>
    scope === 'organization' ? 'the organization' : `${scope} ${names[scope]?.get(id) ?? id ?? ''}`
  const usedOf = ({ limit_usd: limit, spent_usd: spent }) => Number(spent) / (Number(limit) || 1)
  const rowOf = (budget) => {
    const { limit_usd: limit, spent_usd: spent, reserved_usd: reserved, window, resets_at: reset } = budget
    return [
      ownerOf(budget),
      el('span', {}, window === 'total' ? 'all time' : window, reset && under('until ', utc(reset))),
      usd(limit),
      usd(spent),
      usd(reserved),
      el('meter', { min: 0, max: 1, value: usedOf(budget), 'aria-label': `${usd(spent)} of ${usd(limit)}` }),
    ]
  }
  const fullest = list.toSorted((a, b) => usedOf(b) - usedOf(a))
  return listing(BUDGETS, fullest, { name: 'Budgets', step: STEP, textOf: ownerOf, rowOf })
}

const requestRow = (names, me) => (row) => [
  action(row.started_at.slice(5, 19).replace('T', ' '), () => showRequest(row, names, me), {
    kind: 'link',
    of: row.model_requested,
  }),
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
const choice = (label, name, options, show) => asking(label, select(name, options, asked[name]), show)

function asking(label, control, show) {
  control.addEventListener('change', () => {
    asked[control.name] = control.value.trim()
    pages = []
    keepChosen(asked)
    void show()
  })
  return el('label', {}, label, control)
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

/** Asked for anew by Refresh only: there may be thousands. */
let known

const controls = (show) => [
  el(
    'div',
    { class: 'bar' },
    el(
      'form',
      { class: 'inline' },
      choice('Last ', 'range', RANGE_NAMES, show),
      choice('By ', 'group_by', GROUPS, show),
    ),
    action('Refresh', () => {
      known = undefined
      return show()
    }),
  ),
]

/** Which requests are listed and exported: one that is named, whenever it was, else those of the time. */
const listed = (range) => ({
  ...(asked.request_id === '' && range),
  outcome: asked.outcome,
  request_id: asked.request_id,
})

function filters(show) {
  const named = input('request_id', asked.request_id, { type: 'search', size: 34, placeholder: 'any' })
  const form = el(
    'form',
    { class: 'inline' },
    asking('Request id ', named, show),
    choice('Show ', 'outcome', OUTCOMES, show),
  )
  form.addEventListener('submit', (event) => event.preventDefault())
  return el('div', { class: 'bar' }, el('h2', {}, 'Requests, newest first'), form)
}

function figures(analytics, cost, names) {
  const nameOf = namer(names)
  const { groups, colourOf } = coloured(analytics.series, nameOf)
  if (groups.length === 0) {
    return [empty('Nothing in this time', 'Each call through the gateway shows here, refused ones too.')]
  }
  const draw = (title, valueOf, told) => chart(title, analytics, { groups, nameOf: colourOf, valueOf, told })
  return [
    analytics.isWhole &&
      notice({ message: 'Too many to draw apart: choose less time to see them in colours.' }, 'warn'),
    el(
      'div',
      { class: 'charts' },
      draw('Requests', (row) => row.requests, number),
      draw('Tokens out', (row) => row.output_tokens, number),
      draw('Known cost, USD', (row) => Number(row.cost_usd ?? 0), usd),
    ),
    legend(groups),
    sums(analytics, cost, nameOf),
  ]
}

page(async ({ me, show }) => {
  const [span, interval] = RANGES[asked.range]
  const range = { from: new Date(Date.now() - span).toISOString() }
  const [analytics, cost, { usage, next_after_id: next }, names] = await Promise.all([
    analyticsOf(range, interval),
    call('GET', query('cost', { ...range, group_by: asked.group_by })),
    call('GET', query('usage', { ...listed(range), after_id: pages.at(-1), limit: 25 })),
    known ?? namesOf(me),
  ])
  known = names
  const turn = (change) => async () => {
    change()
    await show()
  }
  return {
    buttons: ['csv', 'jsonl'].map((format) =>
      exportLink(`Export ${format.toUpperCase()}`, query('usage/export', { ...listed(range), format })),
    ),
    content: [
      tiles(analytics.totals, cost),
      ...figures(analytics, cost, names),
      cost.budgets.length > 0 && budgets(cost.budgets, names),
      filters(show),
      usage.length === 0
        ? empty('No such request', asked.request_id ? 'None that is kept.' : `Nothing in the last ${asked.range}.`)
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
}, controls)
