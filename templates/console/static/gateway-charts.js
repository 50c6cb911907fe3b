// Bars over time, stacked by group.
import { el, svg } from './gateway-elements.js'

const WIDTH = 640
const HEIGHT = 120
const COLOURS = 8
const HOUR = 3_600_000
const STEPS = { minute: 60_000, hour: HOUR, day: 24 * HOUR }

const instant = (ms) => new Date(ms).toISOString().slice(5, 16).replace('T', ' ')

/** Names of groups in the order of their colours, the biggest first; those beyond the colours are one. */
export function coloured(series, nameOf) {
  const requests = new Map()
  for (const row of series) requests.set(nameOf(row), (requests.get(nameOf(row)) ?? 0) + row.requests)
  const names = [...requests.keys()].sort((a, b) => requests.get(b) - requests.get(a))
  if (names.length <= COLOURS) return { groups: names, colourOf: nameOf }
  const own = new Set(names.slice(0, COLOURS - 1))
  const others = `${(names.length - own.size).toLocaleString('en')} others`
  return { groups: [...own, others], colourOf: (row) => (own.has(nameOf(row)) ? nameOf(row) : others) }
}

/** `nameOf` is which of the `groups` a row belongs to, `valueOf` its height, `told` a height in words. */
export function chart(title, { series, from, to, interval }, { groups, nameOf, valueOf, told }) {
  const step = STEPS[interval]
  const first = Math.floor(Date.parse(from) / step) * step
  const count = Math.ceil((Date.parse(to) - first) / step)
  /** Of each bar the height of each group. */
  const stacks = Array.from({ length: count }, () => groups.map(() => 0))
  const places = new Map(groups.map((name, i) => [name, i]))
  for (const row of series) {
    const stack = stacks[Math.round((Date.parse(row.bucket) - first) / step)]
    if (stack) stack[places.get(nameOf(row))] += valueOf(row)
  }
  const sums = stacks.map((stack) => stack.reduce((sum, value) => sum + value, 0))
  const most = Math.max(...sums)
  const total = sums.reduce((sum, value) => sum + value, 0)
  const label = `${title}: ${told(total)} in all, at most ${told(most)} in one ${interval}`
  const width = WIDTH / stacks.length
  const bars = stacks.flatMap((stack, i) =>
    barsOf(stack, { x: i * width, width, most, groups, told, at: instant(first + i * step) }),
  )
  return el(
    'figure',
    { class: 'panel' },
    el('figcaption', {}, el('strong', {}, title), el('span', {}, `${told(total)} in all`)),
    svg(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
      bars,
    ),
    el(
      'p',
      { class: 'axis', 'aria-hidden': 'true' },
      el('span', {}, instant(first)),
      el('span', {}, most > 0 && `at most ${told(most)} ${interval === 'hour' ? 'an' : 'a'} ${interval}`),
      el('span', {}, `${instant(Date.parse(to))} UTC`),
    ),
  )
}

function barsOf(stack, { x, width, most, groups, told, at }) {
  let y = HEIGHT
  return stack.map((value, group) => {
    if (value === 0) return false
    const height = (value / most) * (HEIGHT - 4)
    y -= height
    return svg(
      'rect',
      { x, y, width: Math.max(1, width - 1), height, class: `series-${group}` },
      svg('title', {}, `${at} UTC · ${groups[group]}: ${told(value)}`),
    )
  })
}

export const legend = (groups) =>
  el(
    'p',
    { class: 'legend' },
    groups.map((name, i) => el('span', { class: `series-${i}` }, name)),
  )
