import { constantText } from './hcl/ast.ts'
import { Heap } from './heap.ts'
import type { Workflow, WorkflowEdge, WorkflowNode } from './model.ts'

/** An edge between two known nodes, by their declaration indexes. */
export interface GraphEdge {
  readonly edge: WorkflowEdge
  readonly from: number
  readonly to: number
}

/** What a loop, or a `stream` join, runs once per item. Contract: runbook.md 4.4, 4.5. */
interface LoopBody {
  /** The join that gathers the iterations; absent when the body is everything behind the loop. */
  readonly join?: number
  readonly nodes: ReadonlySet<number>
}

/** The graph of a workflow without unknown ends and cycles. Contract: runbook.md 4.1. */
export class Graph {
  readonly workflow: Workflow
  readonly nodes: readonly WorkflowNode[]
  readonly edges: readonly GraphEdge[]
  readonly incoming: readonly (readonly GraphEdge[])[]
  readonly outgoing: readonly (readonly GraphEdge[])[]
  readonly indexes: ReadonlyMap<string, number>
  /** Bodies by the node that opens them. */
  readonly bodies: ReadonlyMap<number, LoopBody>
  /** How many bodies a join gathers. */
  readonly gathers: ReadonlyMap<number, number>
  /** The opener of the innermost body around a node. */
  readonly owner: readonly (number | undefined)[]
  /** Node indexes in plan order, and the place of each node in it. */
  readonly order: readonly number[]
  readonly position: readonly number[]
  private readonly topological: readonly number[]
  private ancestors: Uint32Array[] | undefined
  private dominators: readonly number[] | undefined

  constructor(workflow: Workflow, edges: readonly GraphEdge[], topological: readonly number[]) {
    this.workflow = workflow
    this.nodes = workflow.nodes
    this.edges = edges
    this.indexes = new Map(workflow.nodes.map((node) => [node.id, node.index]))
    this.incoming = adjacency(workflow.nodes.length, edges, 'to')
    this.outgoing = adjacency(workflow.nodes.length, edges, 'from')
    this.topological = topological
    this.bodies = findBodies(this, topological)
    const gathers = new Map<number, number>()
    for (const { join } of this.bodies.values()) if (join !== undefined) gathers.set(join, (gathers.get(join) ?? 0) + 1)
    this.gathers = gathers
    this.owner = findOwners(this, topological)
    this.order = planOrder(this)
    const position = Array.from<number>({ length: this.nodes.length })
    for (const [place, index] of this.order.entries()) position[index] = place
    this.position = position
  }

  /** Whether a path leads from `ancestor` to `node`. */
  isAncestor(ancestor: number, node: number): boolean {
    const words = (this.ancestors ??= ancestorSets(this, this.topological))[node]
    return ((words?.[ancestor >> 5] ?? 0) & (1 << (ancestor & 31))) !== 0
  }

  /** The first node on every way from a node to the end; the number of nodes stands for the end itself. */
  get postDominators(): readonly number[] {
    return (this.dominators ??= postDominators(this, this.topological))
  }

  /** The edges by which a loop or split enters what it opens. */
  entries(node: number): readonly GraphEdge[] {
    return (this.outgoing[node] ?? []).filter(({ edge }) => edge.on === 'success' || edge.on === 'always')
  }

  /** The openers around a node, innermost first. */
  *openers(node: number): Generator<number> {
    for (let opener = this.owner[node]; opener !== undefined; opener = this.owner[opener]) yield opener
  }

  /** What lies behind `node`, up to and without `end`; edges for a failed or skipped `node` itself don't count. */
  behind(node: number, end: number | undefined): Set<number> {
    const found = new Set<number>()
    const open = [node]
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const { to } of at === node ? this.entries(at) : (this.outgoing[at] ?? [])) {
        if (to === end || found.has(to)) continue
        found.add(to)
        open.push(to)
      }
    }
    return found
  }
}

/** Builds the graph, or names the nodes of a cycle in order. Edges with unknown ends are left out. */
export function buildGraph(workflow: Workflow): Graph | { readonly cycle: readonly WorkflowNode[] } {
  const indexes = new Map(workflow.nodes.map((node) => [node.id, node.index]))
  const edges: GraphEdge[] = []
  for (const edge of workflow.edges) {
    const [from, to] = [indexes.get(edge.from), indexes.get(edge.to)]
    if (from !== undefined && to !== undefined) edges.push({ edge, from, to })
  }
  const topological = sort(workflow.nodes.keys(), edges)
  if (topological.length === workflow.nodes.length) return new Graph(workflow, edges, topological)
  return { cycle: findCycle(workflow.nodes, edges, new Set(topological)) }
}

function adjacency(count: number, edges: readonly GraphEdge[], end: 'from' | 'to'): GraphEdge[][] {
  const lists = Array.from({ length: count }, (): GraphEdge[] => [])
  for (const edge of edges) lists[edge[end]]?.push(edge)
  return lists
}

/** Kahn's order, of free nodes the one declared first; nodes on or behind a cycle are missing. */
function sort(members: Iterable<number>, edges: readonly Pick<GraphEdge, 'from' | 'to'>[]): number[] {
  const waiting = new Map<number, number>()
  const next = new Map<number, number[]>()
  for (const { from, to } of edges) {
    waiting.set(to, (waiting.get(to) ?? 0) + 1)
    const targets = next.get(from)
    if (targets) targets.push(to)
    else next.set(from, [to])
  }
  const free = new Heap<number>((a, b) => a - b)
  for (const node of members) if (!waiting.has(node)) free.push(node)
  const order: number[] = []
  for (let node = free.pop(); node !== undefined; node = free.pop()) {
    order.push(node)
    for (const to of next.get(node) ?? []) {
      const left = (waiting.get(to) ?? 0) - 1
      waiting.set(to, left)
      if (left === 0) free.push(to)
    }
  }
  return order
}

function findCycle(
  nodes: readonly WorkflowNode[],
  edges: readonly GraphEdge[],
  sorted: ReadonlySet<number>,
): WorkflowNode[] {
  // every node that could not be sorted has a predecessor that could not either: walking back must come round
  const before = new Map<number, number>()
  for (const { from, to } of edges) if (!sorted.has(from) && !sorted.has(to) && !before.has(to)) before.set(to, from)
  let at = [...before.keys()][0] ?? 0
  const seen = new Set<number>()
  while (!seen.has(at)) {
    seen.add(at)
    at = before.get(at) ?? at
  }
  const cycle = [at]
  for (let step = before.get(at) ?? at; step !== at; step = before.get(step) ?? at) cycle.push(step)
  const first = cycle.indexOf(Math.min(...cycle))
  const rotated = [...cycle.slice(first), ...cycle.slice(0, first)]
  return [rotated[0] ?? 0, ...rotated.slice(1).toReversed()].flatMap((index) => nodes[index] ?? [])
}

const textOf = (node: WorkflowNode | undefined, name: string): string | undefined => {
  const attribute = node?.attributes.get(name)
  return attribute && constantText(attribute.value)
}

export const isStream = (node: WorkflowNode | undefined): boolean =>
  node?.type === 'join' && textOf(node, 'mode') === 'stream'

function findBodies(graph: Graph, topological: readonly number[]): Map<number, LoopBody> {
  const bodies = new Map<number, LoopBody>()
  const openers = topological.filter((index) => graph.nodes[index]?.type === 'loop' || isStream(graph.nodes[index]))
  if (openers.length === 0) return bodies
  const joins = new Map<number, number | undefined>()
  for (const opener of openers.toReversed()) joins.set(opener, gatheringJoin(graph, joins, opener))
  for (const opener of openers) {
    const join = joins.get(opener)
    bodies.set(opener, { ...(join !== undefined && { join }), nodes: graph.behind(opener, join) })
  }
  return bodies
}

/** The join named by the attribute, else the nearest that every path passes and no loop inside has taken. */
function gatheringJoin(
  graph: Graph,
  inner: ReadonlyMap<number, number | undefined>,
  opener: number,
): number | undefined {
  const named = textOf(graph.nodes[opener], 'join')
  if (named !== undefined) return graph.indexes.get(named)
  const { postDominators: dominators, nodes } = graph
  const exit = nodes.length
  for (let at = dominators[opener] ?? exit; at !== exit;) {
    if (inner.has(at)) {
      const join = inner.get(at)
      if (join === undefined) return undefined
      at = dominators[join] ?? exit
    } else {
      if (nodes[at]?.type === 'join') return at
      at = dominators[at] ?? exit
    }
  }
  return undefined
}

/** The nearest join that every path from a `split` passes. */
export function regionJoin({ postDominators: dominators, nodes }: Graph, split: number): number | undefined {
  const exit = nodes.length
  for (let at = dominators[split] ?? exit; at !== exit; at = dominators[at] ?? exit) {
    if (nodes[at]?.type === 'join') return at
  }
  return undefined
}

const OPENERS = new Set(['loop', 'split'])

function postDominators(graph: Graph, topological: readonly number[]): number[] {
  const exit = graph.nodes.length
  const parent = Array.from<number>({ length: exit + 1 }).fill(exit)
  const depth = Array.from<number>({ length: exit + 1 }).fill(0)
  const common = (a: number, b: number): number => {
    while (a !== b) {
      if ((depth[a] ?? 0) >= (depth[b] ?? 0)) a = parent[a] ?? exit
      else b = parent[b] ?? exit
    }
    return a
  }
  for (const node of topological.toReversed()) {
    const opens = OPENERS.has(graph.nodes[node]?.type ?? '')
    const targets = (opens ? graph.entries(node) : (graph.outgoing[node] ?? [])).map(({ to }) => to)
    const dominator = targets.length === 0 ? exit : targets.reduce(common)
    parent[node] = dominator
    depth[node] = (depth[dominator] ?? 0) + 1
  }
  return parent
}

function findOwners(graph: Graph, topological: readonly number[]): (number | undefined)[] {
  const owner = Array.from<number | undefined>({ length: graph.nodes.length })
  // inner loops come later and overwrite
  for (const opener of topological) {
    for (const node of graph.bodies.get(opener)?.nodes ?? []) owner[node] = opener
  }
  return owner
}

/** Topological, declared first among free nodes, each body one block behind its opener. */
function planOrder(graph: Graph): number[] {
  const groups = new Map<number | undefined, number[]>()
  for (const { index } of graph.nodes) {
    const owner = graph.owner[index]
    const group = groups.get(owner)
    if (group) group.push(index)
    else groups.set(owner, [index])
  }
  const edges = new Map<number | undefined, { from: number; to: number }[]>()
  const add = (from: number, to: number): void => {
    const owner = graph.owner[to]
    const list = edges.get(owner) ?? []
    edges.set(owner, list)
    list.push({ from, to })
  }
  for (const { from, to } of graph.edges) {
    const standIn = representative(graph, from, graph.owner[to])
    if (standIn !== undefined && standIn !== to) add(standIn, to)
  }
  for (const [opener, { join }] of graph.bodies)
    if (join !== undefined && graph.owner[join] === graph.owner[opener]) add(opener, join)
  const emit = (owner: number | undefined): number[] => {
    const members = groups.get(owner) ?? []
    const sorted = sort(members, edges.get(owner) ?? [])
    const rest = sorted.length === members.length ? [] : members.filter((node) => !sorted.includes(node))
    return [...sorted, ...rest].flatMap((node) => (groups.has(node) ? [node, ...emit(node)] : [node]))
  }
  return emit(undefined)
}

/** The node of the body of `owner` that is `node` or holds it. */
function representative(graph: Graph, node: number, owner: number | undefined): number | undefined {
  for (let at: number | undefined = node; at !== undefined; at = graph.owner[at])
    if (graph.owner[at] === owner) return at
  return undefined
}

function ancestorSets(graph: Graph, topological: readonly number[]): Uint32Array[] {
  const words = (graph.nodes.length >> 5) + 1
  const sets = graph.nodes.map(() => new Uint32Array(words))
  for (const node of topological) {
    const set = sets[node]
    for (const { from } of graph.incoming[node] ?? []) {
      const other = sets[from]
      if (!set || !other) continue
      for (let i = 0; i < words; i++) set[i] = (set[i] ?? 0) | (other[i] ?? 0)
      set[from >> 5] = (set[from >> 5] ?? 0) | (1 << (from & 31))
    }
  }
  return sets
}
