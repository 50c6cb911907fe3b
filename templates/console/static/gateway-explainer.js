// Where a request would go now, and why not elsewhere.
import { notice } from './gateway-dialog.js'
import { el, empty, input, percent, select, state, table, words } from './gateway-elements.js'
import { call } from './gateway-session.js'

const WHY = [
  'member of the alias',
  'its default model',
  'mapping or allowed models',
  'known model of the provider',
  'takes any name',
]
const COLUMNS = [['Credential'], ['Model'], ['Why'], ['Priority', 'num'], ['Share now', 'num'], ['State']]

/** The names that a caller may ask for, as a list to choose from. */
export const namesList = (models) =>
  el(
    'datalist',
    { id: 'names' },
    models.map(({ id }) => el('option', { value: id })),
  )

/** Asks for a name, and tells its candidates. */
export function explainer(credentials, keys, models) {
  const answer = el('div', { 'aria-live': 'polite' })
  const form = el(
    'form',
    {
      class: 'inline',
      async onsubmit(event) {
        event.preventDefault()
        const { key_id: key, ...asked } = Object.fromEntries(new FormData(form))
        try {
          const { candidates } = await call('POST', 'route', { ...asked, ...(key && { key_id: Number(key) }) })
          answer.replaceChildren(explained(candidates, credentials))
        } catch (error) {
          answer.replaceChildren(notice(error))
        }
      },
    },
    el('label', {}, 'Model ', input('model', '', { required: true, placeholder: 'gpt-5, my-alias, …', list: 'names' })),
    namesList(models),
    el('label', {}, 'Surface ', select('surface', [['chat'], ['messages'], ['responses'], ['embeddings']], 'chat')),
    keys.length > 0 &&
      el(
        'label',
        {},
        'With ',
        select('key_id', [['', 'my session'], ...keys.map(({ id, name }) => [id, `the key ${name}`])], ''),
      ),
    el('button', { class: 'primary' }, 'Explain'),
  )
  return el(
    'section',
    { class: 'panel', 'aria-labelledby': 'explain-h' },
    el('h2', { id: 'explain-h' }, 'Where would a request go now?'),
    form,
    answer,
  )
}

function explained(candidates, credentials) {
  if (candidates.length === 0) return empty('Nowhere', 'Nothing serves this name.')
  const rows = candidates.map(({ credential_id: id, model, ring, priority, share, state: name, skipped }) => [
    credentials.get(id)?.name ?? `credential ${id}`,
    model,
    WHY[ring],
    String(priority),
    percent(share),
    state(skipped ?? name, skipped ? `skipped: ${words(skipped)}` : name),
  ])
  return table(COLUMNS, rows, 'Candidates')
}
