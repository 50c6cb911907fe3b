// Elements of the gateway's pages. Text from elsewhere becomes text nodes only, so that none of it can act.

/** What lets a text read in another order than its own, or is not seen. */
const STEERING = /[^\P{Cc}\n\r\t]|[\u202a-\u202e\u2066-\u2069]/gu

/** As on the server: escapes in place of what would make a text look like another one. */
const tame = (text) =>
  text.replace(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** An element: properties that begin with `on` are listeners, the others attributes; false and undefined leave one out. */
export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children)
}

/** The same for SVG. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children)
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : value)
  }
  const shown = children.flat(Infinity).filter((child) => child !== undefined && child !== false && child !== '')
  element.append(...shown.map((child) => (child instanceof Node ? child : tame(String(child)))))
  return element
}

/** A labelled field; `hint` says what to write. */
export const field = (label, input, hint) =>
  el('label', {}, label, ' ', hint && el('span', { class: 'hint' }, hint), input)

export const input = (name, value, more = {}) => el('input', { name, value: value ?? '', ...more })

export const numeric = (name, value, more = {}) => input(name, value, { type: 'number', min: 1, ...more })

export function area(name, value, rows = 2) {
  const element = el('textarea', { name, rows, dir: 'auto' })
  element.value = value ?? ''
  return element
}

export const check = (name, isOn, label, value) =>
  el('label', { class: 'check' }, el('input', { type: 'checkbox', name, checked: isOn, value }), label)

/** Options are `[value]` or `[value, what it is called]`. */
export const select = (name, options, chosen, more = {}) =>
  el(
    'select',
    { name, ...more },
    options.map(([value, label = value]) => el('option', { value, selected: String(value) === String(chosen) }, label)),
  )

export const pair = (...fields) => el('div', { class: 'pair' }, fields)

export const choices = (legend, checks) => el('fieldset', {}, el('legend', {}, legend), checks)

/**
 * A table whose cells are texts or elements; columns are `[label, class]`. Where it is narrow its rows become cards, and
 * cells bear the labels of their columns: roles are said, since browsers forget them then.
 */
export const table = (columns, rows, name) =>
  el(
    'div',
    { class: 'panel scroll', role: 'region', 'aria-label': name, tabindex: '0' },
    el(
      'table',
      { role: 'table', 'aria-label': name },
      el('thead', { role: 'rowgroup' }, rowOf(columns.map(headOf))),
      el(
        'tbody',
        { role: 'rowgroup' },
        rows.map((cells) => rowOf(cells.map((cell, i) => cellOf(cell, i, columns[i])))),
      ),
    ),
  )

const rowOf = (cells) => el('tr', { role: 'row' }, cells)

const headOf = ([label, kind]) => {
  const shown = label === '' ? el('span', { class: 'unseen' }, 'Actions') : label
  return el('th', { role: 'columnheader', scope: 'col', class: kind }, shown)
}

const cellOf = (cell, i, [label, kind]) =>
  i === 0
    ? el('th', { role: 'rowheader', scope: 'row', class: kind }, cell ?? '')
    : el('td', { role: 'cell', class: cell === '–' ? `${kind ?? ''} none` : kind, 'data-label': label }, cell ?? '')

export const under = (...children) => el('span', { class: 'under' }, children)

export const chip = (text) => el('span', { class: 'chip' }, text)

export const facts = (entries, kind = 'facts') =>
  el(
    'dl',
    { class: kind },
    entries.filter(Boolean).map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
  )

export const empty = (heading, text, more) =>
  el('div', { class: 'panel empty' }, el('h2', {}, heading), el('p', {}, text), more && el('p', {}, more))

const GOOD = ['healthy', 'ok', 'enabled', 'cached']
const BAD = ['rejected', 'open', 'error']
const WARN = ['degraded', 'cooling', 'full', 'out_of_quota']

/** A state with its colour. */
export const state = (name, text = name) =>
  el(
    'span',
    {
      class: `state ${GOOD.includes(name) ? 'good' : BAD.includes(name) ? 'bad' : WARN.includes(name) ? 'warn' : 'off'}`,
    },
    text,
  )

/** A code as words. */
export const words = (code) => code.replaceAll('_', ' ')

/** A time to the minute, or to as many characters of ISO 8601 as asked. */
export const time = (iso, length = 16) =>
  iso === undefined ? '' : el('time', { datetime: iso, title: iso }, iso.slice(0, length).replace('T', ' '))

/** The same where no heading says of which zone it is. */
export const utc = (iso) => [time(iso), ' UTC']

export const number = (value) => (value === null || value === undefined ? '–' : value.toLocaleString('en'))

/** A span of time in milliseconds. */
export const ms = (value) => {
  if (value === undefined || value === null) return '–'
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ms`
}

/** A part of a whole; a small one is not nothing. */
export const percent = (part) => (part > 0 && part < 0.01 ? '< 1 %' : `${Math.round(100 * part)} %`)

/** Unknown is never shown as nothing. */
export const usd = (text) => (text === null || text === undefined ? 'unknown' : `$${trimmed(Number(text))}`)

const trimmed = (value) =>
  value !== 0 && value < 0.01
    ? value.toLocaleString('en', { maximumSignificantDigits: 3, maximumFractionDigits: 9 })
    : value.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: value < 1 ? 4 : 2 })

export const lines = (text) =>
  text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean)

/** Values of a form that are there, as numbers. */
export const numbers = (form, names) =>
  Object.fromEntries(names.filter((name) => form.get(name)).map((name) => [name, Number(form.get(name))]))

/** Values of a form that are there. */
export const texts = (form, names) =>
  Object.fromEntries(names.filter((name) => form.get(name)).map((name) => [name, form.get(name)]))
