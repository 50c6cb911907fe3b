import { COLORS, type Picture } from './picture.ts'

const WIDTH = 180
const HEIGHT = 44
const GAP = 56
const MARGIN = 20
const LETTERS = 24

interface Point {
  readonly x: number
  readonly y: number
}

/** A picture of its own, without scripts, fonts or links. */
export function svg(picture: Picture, direction: 'LR' | 'TB'): string {
  const { nodes, edges, name } = picture
  const rows = layers(picture)
  const across = direction === 'TB' ? WIDTH : HEIGHT
  const along = direction === 'TB' ? HEIGHT : WIDTH
  const places = new Map<number, Point>()
  for (const [depth, row] of rows.entries()) {
    for (const [i, node] of row.entries()) {
      const [a, b] = [MARGIN + depth * (along + GAP), MARGIN + i * (across + GAP / 2)]
      places.set(node, direction === 'TB' ? { x: b, y: a } : { x: a, y: b })
    }
  }
  const width = Math.max(0, ...[...places.values()].map(({ x }) => x)) + WIDTH + MARGIN
  const height = Math.max(0, ...[...places.values()].map(({ y }) => y)) + HEIGHT + MARGIN
  const at = (node: number): Point => places.get(node) ?? { x: 0, y: 0 }
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escape(name)}</title>`,
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#495057"/></marker></defs>',
    ...edges.map((edge) => edgeSvg(at(edge.from), at(edge.to), edge, direction)),
    ...nodes.map((node, i) => nodeSvg(at(i), node)),
    '</svg>',
  ].join('\n')}\n`
}

/** Nodes by the length of the longest path to them; on a cycle, where the first pass leaves them. */
function layers({ nodes, edges }: Picture): number[][] {
  const waiting = nodes.map(() => 0)
  const outgoing = nodes.map((): number[] => [])
  for (const { from, to } of edges) {
    waiting[to] = (waiting[to] ?? 0) + 1
    outgoing[from]?.push(to)
  }
  const depth = nodes.map(() => 0)
  const free = [...nodes.keys()].filter((node) => waiting[node] === 0)
  for (const node of free) {
    for (const to of outgoing[node] ?? []) {
      depth[to] = Math.max(depth[to] ?? 0, (depth[node] ?? 0) + 1)
      waiting[to] = (waiting[to] ?? 0) - 1
      if (waiting[to] === 0) free.push(to)
    }
  }
  const rows: number[][] = []
  for (const [node, level] of depth.entries()) (rows[level] ??= []).push(node)
  return rows.map((row) => row ?? [])
}

function nodeSvg({ x, y }: Point, { id, type, status }: Picture['nodes'][number]): string {
  const fill = status === undefined ? '#ffffff' : (COLORS[status] ?? '#ffffff')
  const middle = x + WIDTH / 2
  const note = status === undefined ? type : `${type}, ${status}`
  return [
    `<g><title>${escape(`${id} (${note})`)}</title>`,
    `<rect x="${x}" y="${y}" width="${WIDTH}" height="${HEIGHT}" rx="6" fill="${fill}" stroke="#495057"/>`,
    `<text x="${middle}" y="${y + 18}" text-anchor="middle" font-weight="bold">${escape(clipped(id))}</text>`,
    `<text x="${middle}" y="${y + 34}" text-anchor="middle" fill="#495057">${escape(clipped(note))}</text></g>`,
  ].join('')
}

function edgeSvg(from: Point, to: Point, { label, state }: Picture['edges'][number], direction: 'LR' | 'TB'): string {
  const down = direction === 'TB'
  const start = down ? { x: from.x + WIDTH / 2, y: from.y + HEIGHT } : { x: from.x + WIDTH, y: from.y + HEIGHT / 2 }
  const end = down ? { x: to.x + WIDTH / 2, y: to.y } : { x: to.x, y: to.y + HEIGHT / 2 }
  const bend = down
    ? `${start.x} ${start.y + GAP / 2} ${end.x} ${end.y - GAP / 2}`
    : `${start.x + GAP / 2} ${start.y} ${end.x - GAP / 2} ${end.y}`
  const dash = state === 'dead' || state === 'pending' ? ' stroke-dasharray="4 4"' : ''
  const path = `<path d="M${start.x} ${start.y}C${bend} ${end.x} ${end.y}" fill="none" stroke="#495057"${dash} marker-end="url(#arrow)"/>`
  if (!label) return path
  const [x, y] = [(start.x + end.x) / 2, (start.y + end.y) / 2]
  return `${path}<text x="${x}" y="${y}" text-anchor="middle" fill="#495057">${escape(clipped(label))}</text>`
}

function clipped(label: string): string {
  const letters = [...label]
  return letters.length > LETTERS ? `${letters.slice(0, LETTERS - 1).join('')}…` : label
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text for XML, in which most control characters can't stand. */
const escape = (text: string): string =>
  text.replace(/[\s\p{Cc}\p{Cs}]+/gu, ' ').replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
