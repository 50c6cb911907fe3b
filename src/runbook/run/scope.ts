import type { Attribute } from '../hcl/ast.ts'
import { FunctionError, KnownAfterRun } from '../hcl/errors.ts'
import { evaluate } from '../hcl/evaluate.ts'
import { isNamespace, type Namespace, type Scope } from '../hcl/scope.ts'
import type { SourceRange } from '../hcl/source.ts'
import { textsIn } from '../hcl/functions/conversion.ts'
import { has, isList, isMap, mapOf, type Value } from '../hcl/values.ts'
import type { Graph } from '../graph.ts'
import type { Masking } from './masking.ts'
import { UNKNOWN, type Frame, type NodeState, type Output } from './state.ts'

/** What is the same for all expressions of a run. */
export interface RunValues {
  readonly graph: Graph
  readonly run: { readonly id: string; readonly attempt: number; readonly startedAt: string }
  /** Start of the run in milliseconds; kept on resume. */
  readonly now: number
  readonly inputs: Readonly<Record<string, Value>>
  readonly variables: Readonly<Record<string, Value>>
  readonly trigger: Value
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly secrets: Readonly<Record<string, string>>
  readonly masking: Masking
  readonly strict: boolean
  readonly files: Required<Pick<Scope, 'readFile' | 'fileExists'>>
  warn(code: 'RB501', message: string, range: SourceRange): void
}

const ROOTS = [
  'input',
  'var',
  'local',
  'trigger',
  'nodes',
  'prev',
  'loop',
  'item',
  'index',
  'run',
  'self',
  'env',
  'secret',
]

/** Names for locals and for everything around a node. */
abstract class RunScope implements Scope {
  protected readonly values: RunValues
  protected readonly locals: ReadonlyMap<string, Value>

  constructor(values: RunValues, locals: ReadonlyMap<string, Value>) {
    this.values = values
    this.locals = locals
  }

  get now(): number {
    return this.values.now
  }

  readFile(path: string): Buffer {
    return this.values.files.readFile(path)
  }

  fileExists(path: string): boolean {
    return this.values.files.fileExists(path)
  }

  conceal(value: Value): void {
    for (const text of textsIn(value)) this.values.masking.add(text)
  }

  names(): string[] {
    return ROOTS.filter((root) => this.variable(root) !== undefined)
  }

  variable(name: string): Value | Namespace | undefined {
    const { values } = this
    switch (name) {
      case 'input':
        return namespace('input', values.inputs)
      case 'var':
        return namespace('variable', values.variables)
      case 'local':
        return mapNamespace('local', this.locals)
      case 'trigger':
        return values.trigger
      case 'run':
        return this.runRecord(false)
      case 'env':
        return refusing(
          'environment variable',
          values.environment,
          (key) => `environment variable ${key} is not allowed, give --env ${key}`,
        )
      case 'secret':
        return refusing('secret', values.secrets, (key) => `secret "${key}" is not given`)
      default:
        return undefined
    }
  }

  /** Contract: runbook.md 3.4. */
  path([first = '', ...rest]: readonly string[], range: SourceRange): Value | undefined {
    const root = first === 'bindings' ? 'input' : first
    let value: Value | Namespace | undefined = this.root(root)
    for (const segment of rest) {
      value = value === undefined ? undefined : member(value, segment)
    }
    if (value === undefined) {
      const path = [first, ...rest].join('.')
      if (this.values.strict) throw new FunctionError(`missing path "${path}"`)
      this.values.warn('RB501', `missing path "${path}"`, range)
      return undefined
    }
    return isNamespace(value) ? value.value() : value
  }

  /** The roots of `{{ path }}` know some more members. */
  protected root(name: string): Value | Namespace | undefined {
    return name === 'run' ? this.runRecord(true) : this.variable(name)
  }

  protected runRecord(extended: boolean, currentNodeId: string | null = null): Value {
    const { id, attempt, startedAt } = this.values.run
    const { name, file } = this.values.graph.workflow
    const record = { id, attempt, workflow: name, file, started_at: startedAt }
    return mapOf(Object.entries(extended ? { ...record, startedAt, triggeredBy: 'cli', currentNodeId } : record))
  }
}

function member(value: Value | Namespace, segment: string): Value | Namespace | undefined {
  if (isNamespace(value)) return value.get(segment)
  if (isMap(value)) return has(value, segment) ? (value[segment] ?? null) : undefined
  return isList(value) && /^\d+$/.test(segment) ? value[Number(segment)] : undefined
}

const namespace = (name: string, values: Readonly<Record<string, Value>>): Namespace => ({
  member: name,
  get: (key) => (Object.hasOwn(values, key) ? values[key] : undefined),
  keys: () => Object.keys(values),
  value: () => mapOf(Object.entries(values)),
})

const mapNamespace = (name: string, values: ReadonlyMap<string, Value>): Namespace => ({
  member: name,
  get: (key) => values.get(key),
  keys: () => [...values.keys()],
  value: () => mapOf(values),
})

/** Names beside the given ones are refused; one given without a value is null. */
const refusing = (
  name: string,
  values: Readonly<Record<string, string | undefined>>,
  message: (key: string) => string,
): Namespace => ({
  member: name,
  get: (key) => {
    if (!Object.hasOwn(values, key)) throw new FunctionError(message(key))
    return values[key] ?? null
  },
  keys: () => Object.keys(values),
  value: () => mapOf(Object.entries(values).map(([key, value]) => [key, value ?? null])),
})

/** What a local sees; other locals are evaluated when first asked for. */
class LocalScope extends RunScope {
  private readonly expressions: ReadonlyMap<string, Attribute>
  private readonly done: Map<string, Value>
  private readonly open = new Set<string>()

  constructor(values: RunValues, expressions: ReadonlyMap<string, Attribute>, done: Map<string, Value>) {
    super(values, done)
    this.expressions = expressions
    this.done = done
  }

  override variable(name: string): Value | Namespace | undefined {
    if (name !== 'local') return super.variable(name)
    return {
      ...mapNamespace('local', this.done),
      get: (key) => this.local(key),
      keys: () => [...this.expressions.keys()],
    }
  }

  local(name: string): Value | undefined {
    const attribute = this.expressions.get(name)
    if (!attribute || this.done.has(name)) return this.done.get(name)
    if (this.open.has(name)) throw new FunctionError(`local "${name}" refers to itself`)
    this.open.add(name)
    const value = evaluate(attribute.value, this)
    this.done.set(name, value)
    return value
  }
}

/** All locals, evaluated once. @throws EvaluationError */
export function evaluateLocals(values: RunValues): ReadonlyMap<string, Value> {
  const done = new Map<string, Value>()
  const { locals } = values.graph.workflow
  const scope = new LocalScope(values, locals, done)
  for (const name of locals.keys()) scope.local(name)
  return done
}

/** What the expressions of a node and of its outgoing edges see. Contract: runbook.md 3.2. */
export class NodeScope extends RunScope {
  private readonly frame: Frame
  private readonly node: number
  private readonly prev: Output
  private readonly item: { readonly value: Value; readonly index: number } | undefined

  constructor(
    values: RunValues,
    locals: ReadonlyMap<string, Value>,
    frame: Frame,
    node: number,
    prev: Output,
    item?: { value: Value; index: number },
  ) {
    super(values, locals)
    this.frame = frame
    this.node = node
    this.prev = prev
    this.item = item
  }

  /** The scope of an attribute that is evaluated per item. */
  withItem(value: Value, index: number): NodeScope {
    return new NodeScope(this.values, this.locals, this.frame, this.node, this.prev, { value, index })
  }

  override names(): string[] {
    return ROOTS.filter((root) => root === 'prev' || this.variable(root) !== undefined)
  }

  override variable(name: string): Value | Namespace | undefined {
    switch (name) {
      case 'var':
        return this.variables()
      case 'nodes':
        return this.nodes()
      case 'prev':
        return known(this.prev)
      case 'loop':
        return this.loop(this.frame)
      case 'item':
        return this.item?.value
      case 'index':
        return this.item?.index
      case 'self':
        return this.self(false)
      default:
        return super.variable(name)
    }
  }

  protected override root(name: string): Value | Namespace | undefined {
    if (name === 'run') return this.runRecord(true, this.graphNode().id)
    if (name === 'self') return this.self(true)
    if (name === 'elapsed_ms') return this.elapsed()
    if (name === 'nodes') return this.nodesForPaths()
    return this.variable(name)
  }

  private graphNode(): Graph['nodes'][number] {
    const node = this.values.graph.nodes[this.node]
    if (!node) throw new Error(`no node ${this.node}`)
    return node
  }

  private self(named: boolean): Value {
    const { id, type } = this.graphNode()
    return mapOf(Object.entries(named ? { id, type, name: id } : { id, type }))
  }

  private variables(): Namespace {
    const { variables } = this.values
    const names = (): string[] => [...new Set([...this.frame.variableNames(), ...Object.keys(variables)])]
    const get = (key: string): Value | undefined => {
      const value = this.frame.variable(key, this.node)
      if (value !== undefined) return value
      for (const frame of this.frame.chain()) if (frame.unknownVariables) throw new KnownAfterRun()
      return Object.hasOwn(variables, key) ? variables[key] : undefined
    }
    return {
      member: 'variable',
      get,
      keys: names,
      value: () => mapOf(names().map((name) => [name, get(name) ?? null])),
    }
  }

  private nodes(): Namespace {
    return {
      member: 'node',
      get: (id) => {
        const state = this.ancestor(id)
        return state === undefined ? undefined : stateRecord(state)
      },
      keys: () => this.ancestorIds(),
      value: () => mapOf(this.ancestorIds().map((id) => [id, stateRecord(this.ancestor(id) ?? null).value()])),
    }
  }

  /** `{{ nodes.id.p }}` looks in the output first. */
  private nodesForPaths(): Namespace {
    return {
      ...this.nodes(),
      get: (id) => {
        const state = this.ancestor(id)
        if (state === undefined) throw new FunctionError(`unknown node "${id}"`)
        const record = stateRecord(state)
        const output = state === null ? null : state.output
        return {
          ...record,
          get: (key) => (output === UNKNOWN ? known(output) : member(output, key)) ?? record.get(key),
        }
      },
    }
  }

  /** The state of an ancestor, null when it did not run; undefined for an unknown id. */
  private ancestor(id: string): NodeState | null | undefined {
    const index = this.values.graph.indexes.get(id)
    if (index === undefined) return undefined
    if (!this.values.graph.isAncestor(index, this.node) && index !== this.node) {
      throw new FunctionError(`node "${id}" is not upstream of "${this.graphNode().id}"`)
    }
    return this.frame.state(index) ?? null
  }

  private ancestorIds(): string[] {
    const { graph } = this.values
    return graph.nodes.flatMap(({ id, index }) => (graph.isAncestor(index, this.node) ? [id] : []))
  }

  private elapsed(): number {
    const { graph } = this.values
    let total = 0
    for (const index of graph.order)
      if (graph.isAncestor(index, this.node)) total += this.frame.state(index)?.durationMs ?? 0
    return total
  }

  private loop(frame: Frame): Namespace | undefined {
    const { iteration, parent } = frame
    if (!iteration || !parent) return undefined
    const get = (key: string): Value | Namespace | undefined => {
      if (key === 'parent') return this.loop(parent) ?? null
      const item = known(iteration.item)
      if (key === 'item') return item
      if (key === 'index') return iteration.index
      if (key === 'count') return iteration.count
      return key === 'key' ? (iteration.key ?? null) : undefined
    }
    const keys = ['item', 'index', 'key', 'count', 'parent']
    return {
      member: 'attribute of loop',
      get,
      keys: () => keys,
      value: () => mapOf(keys.map((key) => [key, whole(get(key) ?? null)])),
    }
  }
}

const whole = (value: Value | Namespace): Value => (isNamespace(value) ? value.value() : value)

/** @throws KnownAfterRun */
function known(output: Output): Value {
  if (output === UNKNOWN) throw new KnownAfterRun()
  return output
}

/** `output`, `status`, `error`, `duration_ms` of a node. */
function stateRecord(state: NodeState | null): Namespace {
  const get = (key: string): Value | undefined => {
    switch (key) {
      case 'output':
        return state ? known(state.output) : null
      case 'status':
        return state?.status ?? null
      case 'error':
        return state?.error ? failureValue(state.error) : null
      case 'duration_ms':
        return state?.durationMs ?? null
      default:
        return undefined
    }
  }
  const keys = ['output', 'status', 'error', 'duration_ms']
  return {
    member: 'attribute of node',
    get,
    keys: () => keys,
    value: () => mapOf(keys.map((key) => [key, get(key) ?? null])),
  }
}

export function failureValue({
  code,
  class: name,
  message,
  attempts,
  details,
}: NonNullable<NodeState['error']>): Value {
  return mapOf(Object.entries({ code, class: name, message, attempts, ...(details && { details }) }))
}
