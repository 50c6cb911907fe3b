// The page of settings.
import { hush, notice, point, tell } from './gateway-dialog.js'
import { area, check, el, field, input, lines, numbers, numeric, pair, select } from './gateway-elements.js'
import { metricsToken } from './gateway-metrics-token.js'
import { page } from './gateway.js'
import { call, change } from './gateway-session.js'

const WINDOWS = [['day'], ['week'], ['month'], ['total', 'all time']]
const SHARING = [
  ['caller', 'with the same caller only'],
  ['organization', 'within the organization'],
]
const SWITCHES = ['cost_tracking', 'private_credentials', 'member_keys', 'content_logging']

function settingsForm(settings, mayChange, show) {
  const answer = el('div', { class: 'answer', role: 'alert' })
  const form = el(
    'form',
    { class: 'panel' },
    // Members read what holds for them.
    el('fieldset', { class: 'bare', disabled: !mayChange }, sections(settings)),
    answer,
    mayChange && el('div', { class: 'buttons' }, el('button', { class: 'primary' }, 'Save')),
  )
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    hush()
    answer.replaceChildren()
    try {
      await change('settings', settings, requestOf(new FormData(form)), JSON.stringify)
      await show()
      tell('The settings are saved.')
    } catch (error) {
      answer.replaceChildren(notice(error))
      point(form, error)
    }
  })
  return form
}

const sections = (settings) => [
  el('h2', {}, 'Money'),
  check('cost_tracking', settings.cost_tracking, 'Track what calls cost'),
  ...budgetFields('budget', 'Budget of the organization', settings.budget),
  ...budgetFields('user_budget', 'Budget of each user', settings.user_budget),
  el('h2', {}, 'Guards'),
  field(
    'Blocked models',
    area('blocked_models', settings.blocked_models.join('\n'), 3),
    'one a line; * at the end stands for any rest',
  ),
  field(
    'Largest request',
    numeric('max_request_bytes', settings.max_request_bytes, { placeholder: 'as the server has it' }),
    'bytes',
  ),
  check('private_credentials', settings.private_credentials, 'Users may bring credentials of their own'),
  check('member_keys', settings.member_keys, 'Members may make keys of their own'),
  el('h2', {}, 'What is kept'),
  pair(
    field(
      'Usage records',
      numeric('usage_retention_days', settings.usage_retention_days, { max: 3650, required: true }),
      'days',
    ),
    field('Answers of the cache are shared', select('cache_scope', SHARING, settings.cache_scope)),
  ),
  check(
    'content_logging',
    settings.content_logging,
    'Keep prompts and answers, sealed; admins read them, and the audit tells',
  ),
  field(
    'Prompts and answers, if kept',
    numeric('content_retention_days', settings.content_retention_days, { max: 90, required: true }),
    'days',
  ),
]

const budgetFields = (name, label, budget) => [
  pair(
    field(
      `${label}, USD`,
      input(`${name}.limit_usd`, budget?.limit_usd, { inputmode: 'decimal', placeholder: 'none' }),
    ),
    field(
      'In each',
      select(`${name}.window`, WINDOWS, budget?.window ?? 'month', { 'aria-label': `${label}: in each` }),
    ),
  ),
  check(
    `${name}.unknown_price`,
    budget?.unknown_price === 'allow',
    'With it: allow models of unknown price, which do not count',
  ),
]

const budgetOf = (form, name) =>
  form.get(`${name}.limit_usd`)
    ? {
        limit_usd: form.get(`${name}.limit_usd`),
        window: form.get(`${name}.window`),
        unknown_price: form.has(`${name}.unknown_price`) ? 'allow' : 'deny',
      }
    : null

const requestOf = (form) => ({
  ...Object.fromEntries(SWITCHES.map((name) => [name, form.has(name)])),
  ...numbers(form, ['usage_retention_days', 'content_retention_days']),
  max_request_bytes: form.get('max_request_bytes') ? Number(form.get('max_request_bytes')) : null,
  blocked_models: lines(form.get('blocked_models')),
  cache_scope: form.get('cache_scope'),
  budget: budgetOf(form, 'budget'),
  user_budget: budgetOf(form, 'user_budget'),
})

/** The price of a model is looked up where it is asked for, not read from a list of hundreds. */
function priceTable({ version, prices }) {
  const answer = el('div', { 'aria-live': 'polite' })
  const search = input('price', '', { type: 'search', placeholder: 'claude-opus, gpt-5, …' })
  search.addEventListener('input', () => {
    const text = search.value.trim().toLowerCase()
    const found =
      text === '' ? [] : prices.filter(({ provider, model }) => `${provider}/${model}`.toLowerCase().includes(text))
    answer.replaceChildren(
      text === ''
        ? ''
        : found.length === 0
          ? el('p', { class: 'muted' }, 'Not in the table: of unknown price.')
          : priceList(found),
    )
  })
  return el(
    'section',
    { class: 'panel', 'aria-labelledby': 'prices-h' },
    el('h2', { id: 'prices-h' }, 'Prices'),
    el(
      'p',
      { class: 'muted' },
      `${prices.length} rows, as of ${version}. A model that is not among them has an unknown price, never none.`,
    ),
    field('Look up', search, 'USD for a million tokens'),
    answer,
  )
}

const perMillion = (usd) =>
  [usd.input !== undefined && `${usd.input} in`, usd.output !== undefined && `${usd.output} out`]
    .filter(Boolean)
    .join(', ')

const pricesOf = ({ usd_per_million: usd, tiers = [], usd_per_request: perRequest }) =>
  [
    usd && perMillion(usd),
    ...tiers.map((tier) => `above ${tier.above_input_tokens} tokens in: ${perMillion(tier.usd_per_million)}`),
    perRequest !== undefined && `${perRequest} a request`,
  ].filter(Boolean)

const priceList = (found) =>
  el(
    'dl',
    { class: 'prices' },
    found
      .slice(0, 8)
      .map((price) =>
        el('div', {}, el('dt', {}, `${price.provider} · ${price.model}`), el('dd', {}, pricesOf(price).join('; '))),
      ),
    found.length > 8 && el('div', {}, el('dt', { class: 'muted' }, `and ${found.length - 8} more`), el('dd', {}, '')),
  )

page(async ({ me, show }) => {
  const [settings, prices, token] = await Promise.all([
    call('GET', 'settings'),
    call('GET', 'cost/prices'),
    me.isAdmin ? call('GET', 'metrics-token') : undefined,
  ])
  return {
    content: [
      !me.isAdmin && notice({ message: 'Admins of the organization change these.' }, 'warn'),
      el(
        'div',
        { class: 'columns wide-left' },
        settingsForm(settings, me.isAdmin, show),
        el('div', {}, token && metricsToken(token, show), priceTable(prices)),
      ),
    ],
  }
})
