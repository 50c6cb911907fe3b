import { buildGraph } from '../graph.ts'
import type { Workflow } from '../model.ts'
import { COLORS, pictureOf, type Overlay, type Picture } from './picture.ts'
import { svg } from './svg.ts'

export const GRAPH_FORMATS = ['text', 'mermaid', 'dot', 'svg'] as const
export const DIRECTIONS = ['LR', 'TB'] as const

export interface GraphOptions {
  readonly format: (typeof GRAPH_FORMATS)[number]
  /** From left to right, or from top to bottom (default). */
  readonly direction?: (typeof DIRECTIONS)[number]
  /** Colours nodes by their status in a run. */
  readonly report?: Overlay
}

/** Draws a workflow. Contract: runbook.md 8. */
export function renderGraph(workflow: Workflow, { format, direction = 'TB', report }: GraphOptions): string {
  const picture = pictureOf(workflow, report)
  switch (format) {
    case 'text':
      return text(workflow, picture)
    case 'mermaid':
      return mermaid(picture, direction)
    case 'dot':
      return dot(picture, direction)
    case 'svg':
      return svg(picture, direction)
  }
}

/** A line for each node in plan order, its outgoing edges under it. */
function text(workflow: Workflow, { name, nodes, edges }: Picture): string {
  const graph = buildGraph(workflow)
  const order = 'cycle' in graph ? nodes.keys() : graph.order
  const lines = [`workflow ${visible(name)}`]
  for (const index of order) {
    const node = nodes[index]
    if (!node) continue
    lines.push(`${visible(node.id)} (${node.type})${node.status === undefined ? '' : ` ${node.status}`}`)
    for (const { from, to, label } of edges) {
      const target = nodes[to]
      if (from !== index || !target) continue
      lines.push(`  -> ${visible(target.id)}${label && `  [${visible(label)}]`}`)
    }
  }
  return `${lines.join('\n')}\n`
}

/** On one line, without what steers a terminal. */
const visible = (label: string): string => label.replace(/[\s\p{Cc}]+/gu, ' ')

function mermaid({ nodes, edges }: Picture, direction: string): string {
  const quoted = (label: string): string => `"${visible(label).replace(/["#&<>`\\[\]{}()|;%]/g, entity)}"`
  const used = [...new Set(nodes.flatMap(({ status }) => status ?? []))]
  const lines = [
    `flowchart ${direction}`,
    ...nodes.map(({ id, type, status }, i) => {
      const label = `${quoted(id).slice(0, -1)}<br/>${quoted(type).slice(1)}`
      return `  n${i}[${label}]${status === undefined ? '' : `:::${status}`}`
    }),
    ...edges.map(({ from, to, label }) => `  n${from} -->${label && `|${quoted(label)}|`} n${to}`),
    ...used.map((status) => `  classDef ${status} fill:${COLORS[status] ?? '#ffffff'},color:#000000`),
  ]
  return `${lines.join('\n')}\n`
}

/** Mermaid's entity codes. */
const entity = (character: string): string => `#${character.charCodeAt(0)};`

function dot({ name, nodes, edges }: Picture, direction: string): string {
  const quoted = (label: string): string => `"${visible(label).replace(/["\\]/g, '\\$&')}"`
  const lines = [
    `digraph ${quoted(name)} {`,
    `  rankdir=${direction}`,
    '  node [shape=box, style="rounded,filled", fillcolor="#ffffff"]',
    ...nodes.map(({ id, type, status }, i) => {
      const color = status === undefined ? '' : `, fillcolor="${COLORS[status] ?? '#ffffff'}"`
      return `  n${i} [label=${quoted(id).slice(0, -1)}\\n${quoted(type).slice(1)}${color}]`
    }),
    ...edges.map(({ from, to, label }) => `  n${from} -> n${to}${label && ` [label=${quoted(label)}]`}`),
    '}',
  ]
  return `${lines.join('\n')}\n`
}
