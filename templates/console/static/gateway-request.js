// One request of the usage, told whole.
import { action, notice, openDialog } from './gateway-dialog.js'
import { el, facts, ms, number, state, table, time, usd, words } from './gateway-elements.js'
import { call } from './gateway-session.js'

/** What it cost, and how sure that is. */
export function costOf({ attempts, outcome, cost_state: known, cost_usd: cost }) {
  if (known === 'disabled') return 'not tracked'
  if (known === 'estimated') return `about ${usd(cost)}`
  if (known === 'unknown_price') return 'unknown price'
  return cost === null && attempts.length === 0 && outcome === 'rejected' ? 'no call' : usd(cost)
}

export const outcomeOf = ({ outcome, error_code: code }) => state(outcome, words(code ?? outcome))

const COLUMNS = [['Credential'], ['Model'], ['Outcome'], ['Time', 'num']]

export function showRequest(row, names, me) {
  const attempts = row.attempts.map(({ credential_id: id, model, class: came, status, duration_ms: took }) => [
    names.credential.get(id) ?? `credential ${id}`,
    model,
    state(came === 'ok' ? 'ok' : 'error', [came, status].filter(Boolean).join(' ')),
    ms(took),
  ])
  const content = el('div', { 'aria-live': 'polite' })
  const { buttons } = openDialog({
    title: row.model_requested === '' ? 'A request' : row.model_requested,
    isWide: true,
    submit: 'Close',
    fields: [
      facts([
        ['Outcome', el('span', {}, outcomeOf(row), ` status ${row.status}`)],
        ['At', el('span', {}, time(row.started_at, 23), ' UTC')],
        ['Request', el('code', {}, row.request_id)],
        ['Surface', `${row.surface}${row.stream ? ', as a stream' : ''}${row.test ? ', a test' : ''}`],
        [
          'Asked by',
          row.key_id === undefined
            ? nameOf(names.user, row.user_id, 'user')
            : `the key ${nameOf(names.key, row.key_id, '')}`,
        ],
        row.client && ['Client', row.client],
        row.response_model && ['Model that answered', row.response_model],
        ['Tokens', tokensOf(row)],
        ['Cost', costOf(row)],
        ['Time', `${ms(row.duration_ms)} in all, ${ms(row.upstream_ms)} upstream, ${ms(row.overhead_ms)} the gateway`],
        row.first_token_ms !== undefined && ['First token', ms(row.first_token_ms)],
        row.finish_reason && ['Finished with', row.finish_reason],
      ]),
      el('h3', {}, row.attempts.length === 0 ? 'No attempt was made' : 'Attempts'),
      attempts.length > 0 ? table(COLUMNS, attempts, 'Attempts') : '',
      content,
    ],
  })
  if (me.isAdmin) buttons.append(action('Prompt and answer', () => showContent(row.id, content)))
}

const nameOf = (known, id, kind) => known.get(id) ?? `${kind} ${id}`.trim()

function tokensOf({ input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens }) {
  const parts = [
    `${number(input_tokens)} in`,
    cache_read_tokens > 0 && `${number(cache_read_tokens)} of them from a cache`,
    cache_write_tokens > 0 && `${number(cache_write_tokens)} into a cache`,
    `${number(output_tokens)} out`,
    reasoning_tokens > 0 && `${number(reasoning_tokens)} of them reasoning`,
  ]
  return parts.filter(Boolean).join(', ')
}

/** Reading it is an act that the audit tells of. */
async function showContent(id, place) {
  try {
    const { request, response, truncated } = await call('GET', `usage/${id}/content`)
    place.replaceChildren(
      el('h3', {}, 'Prompt'),
      el('pre', { class: 'wrap' }, textOf(request)),
      el('h3', {}, 'Answer'),
      el('pre', { class: 'wrap' }, textOf(response)),
      ...(truncated ? [el('p', { class: 'muted' }, 'Only its beginning is kept.')] : []),
    )
  } catch (error) {
    const message =
      error.status === 404 ? 'Nothing is kept of it: the setting was off, or its time is over.' : error.message
    place.replaceChildren(notice({ message }, error.status === 404 ? 'warn' : 'bad'))
  }
}

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))
