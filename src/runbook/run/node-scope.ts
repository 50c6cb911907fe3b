import { FunctionError, KnownAfterRun } from '../hcl/errors.ts'
import { isNamespace, type Namespace } from '../hcl/scope.ts'
import { mapOf, type Value } from '../hcl/values.ts'
import type { Graph } from '../graph.ts'
import { member, ROOTS, RunScope, type RunValues } from './scope.ts'
import { UNKNOWN, type Frame, type NodeState, type Output } from './state.ts'

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

/** A failure as expressions see it. Contract: runbook.md 3.2. */
export function failureValue({
  code,
  class: name,
  message,
  attempts,
  details,
}: NonNullable<NodeState['error']>): Value {
  return mapOf(Object.entries({ code, class: name, message, attempts, ...(details && { details }) }))
}
