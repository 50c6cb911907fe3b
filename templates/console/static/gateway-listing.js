// A long list: its beginning, more of it when asked for, and what holds a word.
import { action } from './gateway-dialog.js'
import { el, input, number, table } from './gateway-elements.js'

/** What is looked for and how much is shown, by the name of the list: the page shows it anew after each act. */
const views = new Map()

/**
 * The table of `records`; `rowOf` gives the cells of one, `textOf` what it is found by.
 * @param step how many are shown at first, and how many more each time
 */
export function listing(columns, records, { name, rowOf, textOf, step = 100 }) {
  if (records.length <= step) return table(columns, records.map(rowOf), name)
  const view = views.get(name) ?? { text: '', shown: step }
  views.set(name, view)
  const count = el('span', { class: 'muted small', role: 'status' })
  const search = input('find', view.text, { type: 'search', 'aria-label': `Find in ${name}`, placeholder: 'Find …' })
  const place = el('div', { class: 'listing' })
  const draw = () => {
    const wanted = view.text.trim().toLowerCase()
    const found = records.filter((record) => textOf(record).toLowerCase().includes(wanted))
    const left = found.length - view.shown
    count.textContent = `${number(Math.min(view.shown, found.length))} of ${number(found.length)}`
    const more = async () => {
      view.shown += step
      draw()
    }
    place.replaceChildren(
      table(columns, found.slice(0, view.shown).map(rowOf), name),
      ...(left > 0 ? [action(`Show ${number(Math.min(step, left))} more`, more)] : []),
    )
  }
  search.addEventListener('input', () => {
    Object.assign(view, { text: search.value, shown: step })
    draw()
  })
  draw()
  return el('div', { class: 'listing' }, el('div', { class: 'bar' }, search, count), place)
}
