import type { Graph, GraphEdge } from '../graph.ts'
import { constantText, type Expression } from '../hcl/ast.ts'
import { didYouMean, pathText, type Diagnostic } from '../hcl/diagnostics.ts'
import { evaluate } from '../hcl/evaluate.ts'
import { constantScope } from '../hcl/scope.ts'
import { isMap, itemsOf, toText } from '../hcl/values.ts'
import { edgeId, type Workflow, type WorkflowEdge, type WorkflowNode } from '../model.ts'
import { isConstant } from '../references.ts'
import type { NodeRegistry } from '../registry.ts'
import { isTrue } from '../run/condition.ts'
import { branchKey } from '../run/condition.ts'
import { isTrigger } from './nodes.ts'

/** Ends of edges, duplicates, edges into triggers. */
export function* checkEdgeEnds(workflow: Workflow, registry: NodeRegistry): Generator<Diagnostic> {
  const types = new Map(workflow.nodes.map(({ id, type }) => [id, type]))
  const seen = new Map<string, WorkflowEdge>()
  for (const edge of workflow.edges) {
    for (const [id, range] of [
      [edge.from, edge.fromRange],
      [edge.to, edge.toRange],
    ] as const) {
      if (types.has(id)) continue
      yield {
        level: 'error',
        code: 'RB301',
        message: `unknown node "${id}"`,
        range,
        edgeId: edgeId(edge),
        ...didYouMean(id, types.keys(), range.source),
      }
    }
    if (registry.metadata(types.get(edge.to) ?? '')?.category === 'trigger') {
      const message = `"${edge.to}" is a trigger, no edge leads to it`
      yield { level: 'error', code: 'RB304', message, range: edge.toRange, edgeId: edgeId(edge) }
    }
    const key = [edge.from, edge.to, edge.on, edge.condition?.range.text, edge.when?.range.text].join('\n')
    const first = seen.get(key)
    if (!first) {
      seen.set(key, edge)
      continue
    }
    const related = [{ message: 'first at', range: first.range }]
    const message = `duplicate edge ${edgeId(edge)}`
    yield { level: 'warning', code: 'RB303', message, range: edge.range, edgeId: edgeId(edge), related }
  }
}

/** RB302, at the edge that closes the cycle. */
export function cycleDiagnostic(workflow: Workflow, cycle: readonly WorkflowNode[]): Diagnostic {
  const ids = [...cycle, ...cycle.slice(0, 1)].map((node) => node.id)
  const edge = workflow.edges.find(({ from, to }) => from === ids.at(-2) && to === ids.at(-1))
  return { level: 'error', code: 'RB302', message: `cycle: ${pathText(ids)}`, range: edge?.range ?? workflow.range }
}

/** What needs the whole graph. Contract: runbook.md 4. */
export function* checkGraph(graph: Graph, registry: NodeRegistry): Generator<Diagnostic> {
  yield* checkStarts(graph)
  for (const { index } of graph.nodes) {
    yield* checkBranches(graph, index, registry)
    yield* checkErrorEdges(graph, index)
    yield* checkJoin(graph, index)
  }
  yield* checkBodies(graph)
  yield* checkReachable(graph)
}

function* checkStarts(graph: Graph): Generator<Diagnostic> {
  const hasTrigger = graph.nodes.some(({ type }) => isTrigger(type))
  for (const { index, id, type, idRange: range } of graph.nodes) {
    const isStart = (graph.incoming[index] ?? []).length === 0
    if (!isStart || isTrigger(type)) continue
    const isIsolated = (graph.outgoing[index] ?? []).length === 0 && graph.nodes.length > 1
    const warning = { level: 'warning', code: 'RB310', range, nodeId: id } as const
    if (isIsolated) yield { ...warning, message: `node "${id}" has no edges` }
    else if (hasTrigger) yield { ...warning, message: `node "${id}" starts beside the triggers` }
  }
}

/** Edges of `if` and `switch` against the branches these have, conditions on others. */
function* checkBranches(graph: Graph, index: number, registry: NodeRegistry): Generator<Diagnostic> {
  const node = graph.nodes[index]
  if (!node) return
  const edges = graph.outgoing[index] ?? []
  const branches = registry.metadata(node.type)?.branches
  if (!branches) {
    for (const { edge } of edges)
      if (edge.condition && isConstant(edge.condition)) yield withoutEffect(edge, edge.condition)
    return
  }
  const names = 'dynamic' in branches ? caseKeys(node, branches.dynamic) : branches
  const keys = names && new Set(names)
  for (const { edge } of edges) {
    if (!edge.condition && !edge.when && edge.on === 'success') {
      const message = `an edge from ${node.type} "${node.id}" needs a condition`
      const hint = `condition = ${keys ? someOf([...keys].map((key) => JSON.stringify(key))) : 'a case key'}`
      yield { level: 'error', code: 'RB305', message, range: edge.range, edgeId: edgeId(edge), hint }
    }
    const key = edge.condition && branchKey(edge.condition)
    if (edge.condition && keys && (key === undefined || !keys.has(key))) {
      const message = `${key === undefined ? 'the condition' : `"${key}"`} is no branch of ${node.type} "${node.id}"`
      const hint = didYouMean(key ?? '', keys, edge.range.source).hint ?? `known are ${someOf([...keys])}`
      yield { level: 'error', code: 'RB306', message, range: edge.condition.range, edgeId: edgeId(edge), hint }
    }
  }
  const taken = new Set(edges.map(({ edge }) => edge.condition && branchKey(edge.condition)))
  if (edges.some(({ edge }) => !edge.condition)) return
  for (const key of keys ?? []) {
    if (taken.has(key) || key === 'default') continue
    const level = node.type === 'if' ? 'info' : 'warning'
    yield {
      level,
      code: 'RB308',
      message: `no edge for branch "${key}" of ${node.type} "${node.id}"`,
      range: node.idRange,
      nodeId: node.id,
    }
  }
}

const someOf = (names: readonly string[]): string =>
  names.length > 10 ? `${names.slice(0, 10).join(', ')}, …` : names.join(', ')

const withoutEffect = (edge: WorkflowEdge, condition: Expression): Diagnostic => ({
  level: 'warning',
  code: 'RB307',
  message: 'a constant condition has no effect here',
  range: condition.range,
  edgeId: edgeId(edge),
  hint: 'use when, or lead the edge from if or switch',
})

function caseKeys(node: WorkflowNode, attribute: string): string[] | undefined {
  const expression = node.attributes.get(attribute)?.value
  if (!expression || !isConstant(expression, false)) return undefined
  const value = evaluate(expression, constantScope())
  const keys = isMap(value) ? Object.keys(value) : (itemsOf(value) ?? []).flatMap((item) => toText(item) ?? [])
  return [...keys, 'default']
}

function* checkErrorEdges(graph: Graph, index: number): Generator<Diagnostic> {
  const node = graph.nodes[index]
  if (node?.onError !== 'continue' && node?.onError !== 'fail') return
  for (const { edge } of graph.outgoing[index] ?? []) {
    if (edge.on !== 'error') continue
    const message = `this edge is never live: on_error of "${node.id}" is "${node.onError}"`
    yield { level: 'warning', code: 'RB311', message, range: edge.range, edgeId: edgeId(edge) }
  }
}

function* checkJoin(graph: Graph, index: number): Generator<Diagnostic> {
  const node = graph.nodes[index]
  if (node?.type === 'join' && !graph.gathers.has(index) && (graph.incoming[index] ?? []).length === 1) {
    yield {
      level: 'info',
      code: 'RB317',
      message: `join "${node.id}" has one edge`,
      range: node.idRange,
      nodeId: node.id,
    }
  }
}

function* checkBodies(graph: Graph): Generator<Diagnostic> {
  for (const [opener, { join }] of graph.bodies) {
    const node = graph.nodes[opener]
    const named = node?.attributes.get('join')
    if (!node || !named) continue
    const target = join === undefined ? undefined : graph.nodes[join]
    const valid =
      target?.type === 'join' &&
      graph.isAncestor(opener, target.index) &&
      graph.owner[target.index] === graph.owner[opener]
    if (valid) continue
    const message = `"${constantText(named.value) ?? ''}" is no join behind loop "${node.id}"`
    yield { level: 'error', code: 'RB314', message, range: named.value.range, nodeId: node.id }
  }
  for (const graphEdge of graph.edges) {
    if (crosses(graph, graphEdge)) {
      const { edge } = graphEdge
      const hint = 'a body is entered at its loop and left at its join'
      yield {
        level: 'error',
        code: 'RB313',
        message: `edge ${edgeId(edge)} crosses a loop body`,
        range: edge.range,
        edgeId: edgeId(edge),
        hint,
      }
    }
  }
}

function crosses({ owner, bodies }: Graph, { from, to }: GraphEdge): boolean {
  if (owner[from] === owner[to]) return false
  const enters = owner[to] === from
  const opener = owner[from]
  const leaves = opener !== undefined && bodies.get(opener)?.join === to && owner[to] === owner[opener]
  return !enters && !leaves
}

/** Nodes that no live edge can reach. */
function* checkReachable(graph: Graph): Generator<Diagnostic> {
  const dead = new Set<number>()
  for (const index of graph.order) {
    const incoming = graph.incoming[index] ?? []
    const node = graph.nodes[index]
    if (!node || incoming.length === 0 || incoming.some((edge) => !dead.has(edge.from) && !neverLive(edge.edge)))
      continue
    dead.add(index)
    yield {
      level: 'warning',
      code: 'RB309',
      message: `node "${node.id}" is never reached`,
      range: node.idRange,
      nodeId: node.id,
    }
  }
}

function neverLive({ when }: WorkflowEdge): boolean {
  return when !== undefined && when.kind === 'literal' && isConstant(when) && !isTrue(when.value)
}
