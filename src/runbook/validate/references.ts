import type { Graph } from '../graph.ts'
import { children, type Call, type Expression } from '../hcl/ast.ts'
import { didYouMean, type Diagnostic } from '../hcl/diagnostics.ts'
import { arityMessage } from '../hcl/evaluate.ts'
import { FUNCTIONS } from '../hcl/functions/index.ts'
import { nonPaths, PATH_ROOTS } from '../hcl/path-template.ts'
import { edgeId, type Workflow, type WorkflowNode } from '../model.ts'
import { calls, references, type Reference } from '../references.ts'
import type { ValidateOptions } from './index.ts'

const EVERYWHERE = new Set(['input', 'var', 'local', 'trigger', 'env', 'secret', 'run'])
const IN_NODES = new Set([...EVERYWHERE, 'nodes', 'prev', 'loop', 'self'])
const PER_ITEM = new Set([...IN_NODES, 'item', 'index'])

/** Where an expression stands. */
interface Place {
  readonly roots: ReadonlySet<string>
  /** The node whose ancestors may be named; its own state too when the expression is an edge's. */
  readonly node?: WorkflowNode
  readonly ownState: boolean
  /** `{{` is a template. */
  readonly braces: boolean
  readonly label: Pick<Diagnostic, 'nodeId' | 'edgeId'>
}

/** Names, functions and their arguments in all expressions. Contract: runbook.md 3, 12.1 RB4xx. */
export function* checkReferences(
  workflow: Workflow,
  graph: Graph | undefined,
  options: ValidateOptions,
): Generator<Diagnostic> {
  for (const { value } of workflow.locals.values()) {
    yield* checkExpression(
      value,
      { roots: EVERYWHERE, ownState: false, braces: true, label: {} },
      workflow,
      graph,
      options,
    )
  }
  yield* localCycles(workflow)
  const nodes = new Map(workflow.nodes.map((node) => [node.id, node]))
  for (const node of workflow.nodes) {
    const place: Place = { roots: IN_NODES, node, ownState: false, braces: true, label: { nodeId: node.id } }
    const properties = options.registry.metadata(node.type)?.inputSchema?.properties ?? {}
    for (const [name, { value }] of node.attributes) {
      const evaluation = properties[name]?.evaluation
      if (evaluation === 'constant') continue
      const roots = evaluation === 'item' ? PER_ITEM : IN_NODES
      yield* checkExpression(value, { ...place, roots }, workflow, graph, options)
    }
    const others = [
      node.when,
      node.timeout,
      ...(node.retry ? [...node.retry.attributes.values()].map(({ value }) => value) : []),
    ]
    for (const expression of others) if (expression) yield* checkExpression(expression, place, workflow, graph, options)
  }
  for (const edge of workflow.edges) {
    const node = nodes.get(edge.from)
    const place: Place = {
      roots: IN_NODES,
      ...(node && { node }),
      ownState: true,
      braces: true,
      label: { edgeId: edgeId(edge) },
    }
    for (const expression of [edge.condition, edge.when]) {
      if (expression) yield* checkExpression(expression, place, workflow, graph, options)
    }
  }
}

function* checkExpression(
  expression: Expression,
  place: Place,
  workflow: Workflow,
  graph: Graph | undefined,
  options: ValidateOptions,
): Generator<Diagnostic> {
  for (const reference of references(expression, place.braces)) {
    const found = checkReference(reference, place, workflow, graph, options)
    if (found) yield { level: 'error', range: reference.range, ...place.label, ...found }
  }
  yield* checkCalls(expression, place)
  yield* literalBraces(expression, place, options.strict === true)
}

type Finding = Pick<Diagnostic, 'code' | 'message'> & { level?: Diagnostic['level']; hint?: string }

function checkReference(
  { root, path, braces }: Reference,
  { roots, node, ownState }: Place,
  workflow: Workflow,
  graph: Graph | undefined,
  options: ValidateOptions,
): Finding | undefined {
  const known = braces ? PATH_ROOTS : roots
  if (!known.has(root)) return { code: 'RB401', message: `unknown variable "${root}"`, ...didYouMean(root, known) }
  const [name] = path
  if (root === 'loop' && graph && node && !insideBody(graph, node, ownState)) {
    return { code: 'RB406', message: '"loop" exists only in a loop body' }
  }
  if (name === undefined) return undefined
  if (root === 'input' && !workflow.inputs.has(name)) {
    return { code: 'RB403', message: `unknown input "${name}"`, ...didYouMean(name, workflow.inputs.keys()) }
  }
  if (root === 'local' && !workflow.locals.has(name)) {
    return { code: 'RB403', message: `unknown local "${name}"`, ...didYouMean(name, workflow.locals.keys()) }
  }
  if (root === 'env' && !Object.hasOwn(options.env ?? {}, name)) {
    const message = `environment variable ${name} is not allowed`
    return { code: 'RB412', message, hint: `give --env ${name}`, level: options.env ? 'error' : 'info' }
  }
  if (root === 'secret' && !Object.hasOwn(options.secrets ?? {}, name)) {
    const hint = `give --secret ${name}=env:NAME or ${name}=file:PATH`
    return { code: 'RB606', message: `secret "${name}" is missing`, hint, level: options.secrets ? 'error' : 'info' }
  }
  return root === 'nodes' && node && graph ? checkNodeReference(name, node, ownState, graph) : undefined
}

const insideBody = (graph: Graph, { index }: WorkflowNode, ownState: boolean): boolean =>
  graph.owner[index] !== undefined || (ownState && graph.bodies.has(index))

function checkNodeReference(id: string, node: WorkflowNode, ownState: boolean, graph: Graph): Finding | undefined {
  const target = graph.indexes.get(id)
  if (target === undefined) {
    return { code: 'RB402', message: `unknown node "${id}"`, ...didYouMean(id, graph.indexes.keys()) }
  }
  if (ownState && target === node.index) return undefined
  const body = graph.owner[target]
  if (body !== undefined && ![...graph.openers(node.index)].includes(body)) {
    return { code: 'RB405', message: `node "${id}" is inside a loop body, it can be named only there` }
  }
  if (graph.isAncestor(target, node.index)) return undefined
  return {
    code: 'RB404',
    message: `node "${id}" is not upstream of "${node.id}"`,
    hint: `lead a path of edges from "${id}" to "${node.id}"`,
  }
}

function* checkCalls(expression: Expression, { label }: Place): Generator<Diagnostic> {
  for (const call of calls(expression)) {
    const fault = callFault(call)
    if (fault) yield { level: 'error', ...label, ...fault }
  }
}

/** An unknown function or a wrong number of arguments. */
export function callFault(call: Call): (Finding & Pick<Diagnostic, 'range'>) | undefined {
  const { name, nameRange, range, arguments: given, spread } = call
  const definition = FUNCTIONS.get(name)
  if (!definition) {
    return {
      code: 'RB407',
      message: `unknown function "${name}"`,
      range: nameRange,
      ...didYouMean(name, FUNCTIONS.keys()),
    }
  }
  const { min, max } = definition
  if (given.length <= max && (given.length >= min || spread)) return undefined
  return { code: 'RB408', message: arityMessage(name, min, max, given.length), range }
}

/** `{{…}}` that is no path stays text, which may not be what was meant. */
function* literalBraces(expression: Expression, place: Place, strict: boolean): Generator<Diagnostic> {
  if (expression.kind === 'template') {
    for (const part of expression.parts) {
      if (part.kind !== 'text') continue
      for (const text of nonPaths(part)) {
        const message = `${text.slice(0, 60)} is no path, it stays as written`
        yield {
          level: strict ? 'error' : 'warning',
          code: 'RB411',
          message,
          range: part.range,
          ...place.label,
          hint: 'write {{{{ for a literal {{',
        }
      }
    }
  }
  for (const child of children(expression)) yield* literalBraces(child, place, strict)
}

function* localCycles({ locals }: Workflow): Generator<Diagnostic> {
  const done = new Set<string>()
  for (const start of locals.keys()) {
    const path: string[] = []
    const cycle = findCycle(start, path)
    if (!cycle) continue
    const local = locals.get(cycle[0] ?? '')
    if (local)
      yield {
        level: 'error',
        code: 'RB409',
        message: `cycle among locals: ${cycle.join(' -> ')}`,
        range: local.nameRange,
      }
  }

  function findCycle(name: string, path: string[]): string[] | undefined {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name]
    if (done.has(name)) return undefined
    path.push(name)
    const local = locals.get(name)
    for (const reference of local ? references(local.value) : []) {
      const cycle =
        reference.root === 'local' && reference.path[0] !== undefined ? findCycle(reference.path[0], path) : undefined
      if (cycle) {
        for (const member of cycle) done.add(member)
        return cycle
      }
    }
    path.pop()
    done.add(name)
    return undefined
  }
}
