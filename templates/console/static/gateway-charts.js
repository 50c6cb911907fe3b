// Bars over time, stacked by group.
import { el, svg } from './gateway-elements.js'

const WIDTH = 640
const HEIGHT = 120
const COLOURS = 8
const HOUR = 3_600_000
const STEPS = { minute: 60_000, hour: HOUR, day: 24 * HOUR }

const rounded = (value) => value.toLocaleString('en', { maximumSignificantDigits: value < 1 ? 2 : 4 })
const instant = (ms) => new Date(ms).toISOString().slice(5, 16).replace('T', ' ')

/** `groups` are the names in the order of their colours, `nameOf` a row's, `valueOf` its height. */
export function chart(title, { series, from, to, interval }, groups, nameOf, valueOf) {
  const step = STEPS[interval]
  const first = Math.floor(Date.parse(from) / step) * step
  const count = Math.ceil((Date.parse(to) - first) / step)
  /** @type {[group: number, value: number][][]} */
  const stacks = Array.from({ length: count }, () => [])
  for (const row of series) {
    stacks[Math.round((Date.parse(row.bucket) - first) / step)]?.push([groups.indexOf(nameOf(row)), valueOf(row) ?? 0])
  }
  const sums = stacks.map((stack) => stack.reduce((sum, [, value]) => sum + value, 0))
  const most = Math.max(...sums)
  const total = sums.reduce((sum, value) => sum + value, 0)
  const told = `${title}: ${rounded(total)} in all, at most ${rounded(most)} in one ${interval}`
  const width = WIDTH / stacks.length
  const bars = stacks.flatMap((stack, i) =>
    barsOf(stack, { x: i * width, width, most, groups, at: instant(first + i * step) }),
  )
  return el(
    'figure',
    { class: 'panel' },
    el('figcaption', {}, el('strong', {}, title), el('span', {}, `${rounded(total)} in all`)),
    svg(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': told, preserveAspectRatio: 'none' },
      bars,
    ),
    el(
      'p',
      { class: 'axis', 'aria-hidden': 'true' },
      el('span', {}, instant(first)),
      el('span', {}, most > 0 && `at most ${rounded(most)} ${interval === 'hour' ? 'an' : 'a'} ${interval}`),
      el('span', {}, instant(Date.parse(to))),
    ),
  )
}

function barsOf(stack, { x, width, most, groups, at }) {
  let y = HEIGHT
  return stack
    .filter(([, value]) => value > 0)
    .map(([group, value]) => {
      const height = (value / most) * (HEIGHT - 4)
      y -= height
      return svg(
        'rect',
        { x, y, width: Math.max(1, width - 1), height, class: `series-${group % COLOURS}` },
        svg('title', {}, `${at} · ${groups[group]}: ${rounded(value)}`),
      )
    })
}

export const legend = (groups) =>
  el(
    'p',
    { class: 'legend' },
    groups.map((name, i) => el('span', { class: `series-${i % COLOURS}` }, name)),
  )
