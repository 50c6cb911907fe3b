import type { Graph } from '../graph.ts'
import { children, type Call, type Expression } from '../hcl/ast.ts'
import { didYouMean, pathText, type Diagnostic } from '../hcl/diagnostics.ts'
import { arityMessage } from '../hcl/functions/arguments.ts'
import { FUNCTIONS } from '../hcl/functions/index.ts'
import { nonPaths, PATH_ROOTS } from '../hcl/path-template.ts'
import type { Source } from '../hcl/source.ts'
import { edgeId, type Workflow, type WorkflowNode } from '../model.ts'
import { calls, references, type Reference } from '../references.ts'
import type { ValidateOptions } from './index.ts'
import { unknownMember } from './members.ts'

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
    const found = checkReference(reference, place, workflow, graph, options) ?? unknownMember(reference)
    if (found) yield { level: 'error', range: reference.range, ...place.label, ...found }
  }
  yield* checkCalls(expression, place)
  yield* literalBraces(expression, place, options.strict === true)
}

type Finding = Pick<Diagnostic, 'code' | 'message'> & { level?: Diagnostic['level']; hint?: string }

function checkReference(
  { root, path, braces, range }: Reference,
  { roots, node, ownState }: Place,
  workflow: Workflow,
  graph: Graph | undefined,
  options: ValidateOptions,
): Finding | undefined {
  const known = braces ? PATH_ROOTS : roots
  if (!known.has(root)) {
    const isNode = graph?.indexes.has(root) === true
    const more = isNode ? { hint: `write nodes.${root}` } : didYouMean(root, known, range.source)
    return { code: 'RB401', message: `unknown variable "${root}"`, ...more }
  }
  const [name] = path
  if (root === 'loop' && graph && node && !insideBody(graph, node, ownState)) {
    return { code: 'RB406', message: '"loop" exists only in a loop body' }
  }
  if (name === undefined) return undefined
  const near = (names: Iterable<string>): { hint?: string } => didYouMean(name, names, range.source)
  if (root === 'input' && !workflow.inputs.has(name)) {
    return { code: 'RB403', message: `unknown input "${name}"`, ...near(workflow.inputs.keys()) }
  }
  if (root === 'local' && !workflow.locals.has(name)) {
    return { code: 'RB403', message: `unknown local "${name}"`, ...near(workflow.locals.keys()) }
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
    return {
      code: 'RB402',
      message: `unknown node "${id}"`,
      ...didYouMean(id, graph.indexes.keys(), graph.workflow.source),
    }
  }
  if (ownState && target === node.index) return undefined
  const body = graph.owner[target]
  if (body !== undefined && ![...graph.openers(node.index)].includes(body)) {
    return { code: 'RB405', message: `node "${id}" is inside a loop body, it can be named only there` }
  }
  if (graph.isAncestor(target, node.index)) return undefined
  if (target === node.index) return { code: 'RB404', message: `node "${id}" cannot see its own output` }
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

/** What to write instead of the functions of other tools. */
const FUNCTION_HINTS: Readonly<Record<string, string>> = {
  now: 'timestamp() is the start of the run',
  uuid: 'nothing random exists; run.id differs from run to run',
  templatefile: 'file("…") reads a text; templates stand in the workflow itself',
  env: 'env.NAME, with --env NAME',
  len: 'length(…)',
  str: 'tostring(…)',
  int: 'tonumber(…)',
  tojson: 'jsonencode(…)',
}

/** An unknown function or a wrong number of arguments. */
export function callFault(call: Call): (Finding & Pick<Diagnostic, 'range'>) | undefined {
  const { name, nameRange, range, arguments: given, spread } = call
  const definition = FUNCTIONS.get(name)
  if (!definition) {
    const hint = Object.hasOwn(FUNCTION_HINTS, name) ? FUNCTION_HINTS[name] : undefined
    return {
      code: 'RB407',
      message: `unknown function "${name}"`,
      range: nameRange,
      ...(hint === undefined ? didYouMean(name, FUNCTIONS.keys(), range.source) : { hint }),
    }
  }
  const { min, max } = definition
  if (given.length <= max && (given.length >= min || spread)) return undefined
  return { code: 'RB408', message: arityMessage(name, min, max, given.length), range }
}

/** A path whose first word is nearly one that begins paths. */
function meantPath(text: string, source: Source): string | undefined {
  const [, root = ''] = /^\{\{\s*([A-Za-z_]+)\s*[.}]/.exec(text) ?? []
  return root === '' ? undefined : didYouMean(root, PATH_ROOTS, source).hint
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
          hint: meantPath(text, part.range.source) ?? 'write {{{{ for a literal {{',
        }
      }
    }
  }
  for (const child of children(expression)) yield* literalBraces(child, place, strict)
}

function* localCycles({ locals }: Workflow): Generator<Diagnostic> {
  const done = new Set<string>()
  for (const start of locals.keys()) {
    const cycle = findCycle(start)
    if (!cycle) continue
    const local = locals.get(cycle[0] ?? '')
    if (local)
      yield {
        level: 'error',
        code: 'RB409',
        message: `cycle among locals: ${pathText(cycle)}`,
        range: local.nameRange,
      }
  }

  /** Walks along references without recursion: a chain may be as long as the file. */
  function findCycle(start: string): string[] | undefined {
    const path: { name: string; left: string[] }[] = []
    const onPath = new Set<string>()
    const enter = (name: string): void => {
      if (done.has(name)) return
      path.push({ name, left: localsIn(name).toReversed() })
      onPath.add(name)
    }
    enter(start)
    for (let last = path.at(-1); last; last = path.at(-1)) {
      const next = last.left.pop()
      if (next === undefined) {
        path.pop()
        onPath.delete(last.name)
        done.add(last.name)
      } else if (onPath.has(next)) {
        const names = path.map(({ name }) => name)
        for (const name of names) done.add(name)
        return [...names.slice(names.indexOf(next)), next]
      } else enter(next)
    }
    return undefined
  }

  function localsIn(name: string): string[] {
    const local = locals.get(name)
    const found = local ? references(local.value) : []
    return found.flatMap(({ root, path: [first] }) => (root === 'local' && first !== undefined ? [first] : []))
  }
}
