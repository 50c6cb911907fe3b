import { toTimestamp } from '../../base/clock.ts'
import type { Graph, GraphEdge } from '../graph.ts'
import type { NodeFailure } from '../errors.ts'
import type { Value } from '../hcl/values.ts'

/** In a dry run: what isn't known before the run. */
export const UNKNOWN: unique symbol = Symbol('known after run')
export type Output = Value | typeof UNKNOWN

export const KNOWN_AFTER_RUN = '(known after run)'

let latest = { ms: Number.NaN, text: '' }

/** The time as text; many nodes start and end in the same millisecond. */
export function timestamp(ms: number): string {
  if (ms !== latest.ms) latest = { ms, text: toTimestamp(ms) }
  return latest.text
}

export type NodeStatus = 'succeeded' | 'failed' | 'skipped' | 'unreached' | 'cancelled' | 'not_run' | 'simulated'

export interface Attempt {
  readonly startedAt: string
  readonly durationMs: number
  readonly error?: Omit<NodeFailure, 'node' | 'attempts'>
}

/** How a node ended in one pass. */
export interface NodeState {
  readonly status: NodeStatus
  readonly output: Output
  readonly branch?: string
  readonly error?: NodeFailure
  /** A failure with which the run may still succeed, or at least go on. */
  readonly tolerated?: boolean
  /** The failure makes the success edges live (`on_error = "continue"`). */
  readonly continued?: boolean
  readonly attempts: readonly Attempt[]
  readonly startedAt?: string
  readonly completedAt?: string
  readonly durationMs: number
  readonly reused?: boolean
  /** The output is not known, because the report that the run goes on from does not show it. */
  readonly withheld?: boolean
  readonly mocked?: boolean
  /** Evaluated attributes, in a dry run. */
  readonly config?: Value
  /** Passes of a body, by index. */
  readonly frames?: readonly Frame[]
}

export const UNREACHED: NodeState = { status: 'unreached', output: null, attempts: [], durationMs: 0 }
export const NOT_RUN: NodeState = { status: 'not_run', output: null, attempts: [], durationMs: 0 }

/** Variables of a loop body. Contract: runbook.md 3.2. */
export interface Iteration {
  readonly opener: number
  readonly index: number
  readonly item: Output
  readonly count: number
  /** Of a map's item. */
  readonly key?: string
}

/** A value of `var.name` set by a node. */
interface Setter {
  readonly node: number
  readonly value: Value
}

/** One pass over the nodes of a body, or over those outside every body. */
export class Frame {
  readonly graph: Graph
  readonly parent: Frame | undefined
  readonly iteration: Iteration | undefined
  /** `loop[3]/` for a pass of a body; prefix of the paths of its nodes. */
  readonly path: string
  /** Compares passes and nodes in plan order. */
  readonly priority: readonly number[]
  readonly members: readonly number[]
  readonly states = new Map<number, NodeState>()
  readonly edges = new Map<GraphEdge, EdgeState>()
  readonly setters = new Map<string, Setter[]>()
  /** No further node of this pass starts. */
  stopped = false
  /** In a dry run: a node sets variables that aren't known yet. */
  unknownVariables = false

  constructor(graph: Graph, members: readonly number[], parent?: Frame, iteration?: Iteration) {
    this.graph = graph
    this.members = members
    this.parent = parent
    this.iteration = iteration
    const opener = iteration && graph.nodes[iteration.opener]
    this.path = opener && parent ? `${parent.path}${opener.id}[${iteration.index}]/` : ''
    this.priority = opener && parent ? [...parent.priority, graph.position[opener.index] ?? 0, iteration.index] : []
  }

  get opener(): number | undefined {
    return this.iteration?.opener
  }

  /** This pass and those around it, innermost first. */
  *chain(): Generator<Frame> {
    yield this
    for (let frame = this.parent; frame; frame = frame.parent) yield frame
  }

  /** The state of a node of this pass or of one around it. */
  state(node: number): NodeState | undefined {
    for (const frame of this.chain()) {
      const state = frame.states.get(node)
      if (state) return state
    }
    return undefined
  }

  set(name: string, setter: Setter): void {
    const setters = this.setters.get(name)
    if (!setters) {
      this.setters.set(name, [setter])
      return
    }
    // kept in plan order; a node usually is the latest
    let at = setters.length
    const { position } = this.graph
    while (at > 0 && (position[setters[at - 1]?.node ?? 0] ?? 0) > (position[setter.node] ?? 0)) at--
    setters.splice(at, 0, setter)
  }

  /** `var.name` as `node` sees it: of its ancestors' values the latest in plan order. */
  variable(name: string, node: number): Value | undefined {
    for (const frame of this.chain()) {
      const setter = frame.setters.get(name)?.findLast((candidate) => this.graph.isAncestor(candidate.node, node))
      if (setter) return setter.value
    }
    return undefined
  }

  *variableNames(): Generator<string> {
    for (const frame of this.chain()) yield* frame.setters.keys()
  }
}

export type EdgeState = 'live' | 'dead' | 'possible'

/** Whether a node reached with this state lets its edges with `on = event` live. Contract: runbook.md 4.3. */
export function permits(state: NodeState, event: GraphEdge['edge']['on']): boolean {
  const { status } = state
  switch (event) {
    case 'success':
      return status === 'succeeded' || status === 'simulated' || (status === 'failed' && state.continued === true)
    case 'error':
      return status === 'failed' && state.continued !== true
    case 'skipped':
      return status === 'skipped'
    case 'always':
      return status === 'succeeded' || status === 'simulated' || status === 'failed' || status === 'skipped'
  }
}
