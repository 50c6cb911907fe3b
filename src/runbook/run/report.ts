import { nodeDigests } from '../digest.ts'
import type { NodeFailure } from '../errors.ts'
import type { Graph, GraphEdge } from '../graph.ts'
import { encodeJson } from '../hcl/json.ts'
import type { SourceRange } from '../hcl/source.ts'
import type { Value } from '../hcl/values.ts'
import type { NodeRegistry } from '../registry.ts'
import type { Masking } from './masking.ts'
import { comparePriority } from './scheduler.ts'
import {
  KNOWN_AFTER_RUN,
  NOT_RUN,
  UNKNOWN,
  UNREACHED,
  type EdgeState,
  type Frame,
  type NodeState,
  type NodeStatus,
} from './state.ts'

export type RunStatus = 'succeeded' | 'failed' | 'timed_out' | 'cancelled' | 'dry_run'

/** Contract: runbook.md 10. */
export interface RunReport {
  readonly reportVersion: 1
  readonly program: { readonly name: string; readonly version: string }
  readonly run: { readonly id: string; readonly attempt: number; readonly resumedFrom?: string }
  readonly workflow: { readonly name: string; readonly file: string; readonly digest: string }
  readonly status: RunStatus
  readonly exitCode: number
  readonly startedAt: string
  readonly completedAt: string
  readonly durationMs: number
  readonly concurrency: number
  readonly inputs: Value
  readonly triggerData?: Value
  readonly nodes: readonly ReportNode[]
  readonly edges: readonly ReportEdge[]
  readonly response?: Value
  readonly error?: NodeFailure
  readonly toleratedFailures: readonly NodeFailure[]
  readonly warnings: readonly ReportWarning[]
  readonly journal?: string
}

export interface ReportWarning {
  readonly code: string
  readonly message: string
  readonly range?: SourceRange
}

/** Each warning once, by position: in which order nodes met them does not matter. */
export function orderedWarnings(warnings: readonly ReportWarning[]): ReportWarning[] {
  const from = ({ range }: ReportWarning): number => range?.from ?? Infinity
  const distinct = new Map(warnings.map((warning) => [`${from(warning)} ${warning.message}`, warning]))
  return [...distinct.values()].sort((a, b) => from(a) - from(b) || (a.message < b.message ? -1 : 1))
}

export interface ReportNode {
  readonly id: string
  /** Changes with the node, its incoming edges and the locals that it uses; not in iterations. */
  readonly digest?: string
  readonly type: string
  readonly typeAs?: string
  readonly category: string
  readonly description?: string
  readonly status: NodeStatus
  readonly reused?: boolean
  readonly mocked?: boolean
  readonly branch?: string
  readonly startedAt?: string
  readonly completedAt?: string
  readonly durationMs?: number
  readonly attempts: NodeState['attempts']
  readonly output?: Value
  readonly outputBytes?: number
  readonly redacted?: boolean
  readonly truncated?: boolean
  readonly config?: Value
  readonly iterations?: readonly ReportIteration[]
  readonly error?: NodeFailure
}

type ReportIteration = { readonly index: number; readonly nodes: readonly ReportNode[] } | { readonly omitted: number }

interface ReportEdge {
  readonly from: string
  readonly to: string
  readonly condition?: string
  readonly on: string
  readonly state: EdgeState | 'pending'
}

const MAX_OUTPUT_BYTES = 1024 * 1024
const MAX_ITERATIONS = 1000

/** Nodes and edges of a report, in plan order and in order of declaration. */
export class ReportBuilder {
  private readonly graph: Graph
  private readonly registry: NodeRegistry
  private readonly masking: Masking

  constructor(graph: Graph, registry: NodeRegistry, masking: Masking) {
    this.graph = graph
    this.registry = registry
    this.masking = masking
  }

  nodes(root: Frame): ReportNode[] {
    const frames = allFrames(root)
    const digests = nodeDigests(this.graph.workflow)
    return this.graph.order.map((index) => {
      const node =
        this.graph.owner[index] === undefined
          ? this.node(index, root.states.get(index) ?? NOT_RUN)
          : this.node(index, summary(frames, index), {}) // its outputs are those of the iterations
      return { ...node, digest: digests[node.id] ?? '' }
    })
  }

  edges(root: Frame): ReportEdge[] {
    const frames = allFrames(root)
    return this.graph.edges.map((graphEdge) => {
      const { edge } = graphEdge
      return {
        from: edge.from,
        to: edge.to,
        ...(edge.condition && { condition: edge.condition.range.text }),
        on: edge.on,
        state: edgeState(frames, graphEdge),
      }
    })
  }

  private node(index: number, state: NodeState, output = this.output(state)): ReportNode {
    const node = this.graph.nodes[index]
    if (!node) throw new Error(`no node ${index}`)
    const { id, type, typeAs, description } = node
    const { status, reused, mocked, branch, startedAt, completedAt, durationMs, attempts, error, config, frames } =
      state
    return {
      id,
      type,
      ...(typeAs !== undefined && { typeAs }),
      category: this.registry.metadata(type)?.category ?? 'action',
      ...(description !== undefined && { description }),
      status,
      ...(reused && { reused }),
      ...(mocked && { mocked }),
      ...(branch !== undefined && { branch }),
      ...(startedAt !== undefined && { startedAt, durationMs }),
      ...(completedAt !== undefined && { completedAt }),
      attempts,
      ...output,
      ...(config !== undefined && { config: this.masking.value(config) }),
      ...(frames && { iterations: this.iterations(frames) }),
      ...(error && { error }),
    }
  }

  private output({
    status,
    output,
    withheld,
  }: NodeState): Pick<ReportNode, 'output' | 'outputBytes' | 'truncated' | 'redacted'> {
    if (status !== 'succeeded' && status !== 'simulated') return {}
    if (output === UNKNOWN) return { output: KNOWN_AFTER_RUN }
    if (withheld) return { redacted: true }
    const masked = this.masking.value(output)
    const text = encodeJson(masked)
    const outputBytes = Buffer.byteLength(text)
    const redacted = masked !== output && text !== encodeJson(output) ? { redacted: true } : {}
    return outputBytes > MAX_OUTPUT_BYTES
      ? { outputBytes, truncated: true, ...redacted }
      : { output: masked, outputBytes, ...redacted }
  }

  private iterations(frames: readonly Frame[]): ReportIteration[] {
    const shown = frames.slice(0, MAX_ITERATIONS).flatMap((frame): ReportIteration[] => {
      const index = frame.iteration?.index ?? 0
      return [{ index, nodes: frame.members.map((node) => this.node(node, frame.states.get(node) ?? NOT_RUN)) }]
    })
    return frames.length > MAX_ITERATIONS ? [...shown, { omitted: frames.length - MAX_ITERATIONS }] : shown
  }
}

function allFrames(root: Frame): Frame[] {
  const frames = [root]
  for (const frame of frames) for (const state of frame.states.values()) frames.push(...(state.frames ?? []))
  return frames
}

const SEVERITY: readonly NodeStatus[] = [
  'failed',
  'cancelled',
  'simulated',
  'succeeded',
  'skipped',
  'not_run',
  'unreached',
]

/** A body node over all passes: the gravest status, the time of all. */
function summary(frames: readonly Frame[], index: number): NodeState {
  const states = frames.flatMap((frame) => (frame.members.includes(index) ? [frame.states.get(index) ?? NOT_RUN] : []))
  const status = SEVERITY.find((candidate) => states.some((state) => state.status === candidate))
  if (status === undefined) return UNREACHED
  const durationMs = states.reduce((total, state) => total + state.durationMs, 0)
  return { status, output: null, attempts: [], durationMs }
}

function edgeState(frames: readonly Frame[], edge: GraphEdge): ReportEdge['state'] {
  const states = new Set(frames.map((frame) => frame.edges.get(edge)))
  return (['live', 'possible', 'dead'] as const).find((state) => states.has(state)) ?? 'pending'
}

/** Failures that didn't end the run, in plan order. */
export function toleratedFailures(root: Frame): NodeFailure[] {
  const found: NodeFailure[] = []
  const visit = (frame: Frame): void => {
    for (const index of frame.graph.order) {
      const state = frame.states.get(index)
      if (state?.tolerated && state.error) found.push(state.error)
      state?.frames?.forEach(visit)
    }
  }
  visit(root)
  return found
}

/** The output of the last `webhook_response` in plan order; in a body that of the last pass. */
export function response(graph: Graph, root: Frame): Value | undefined {
  const responses = allFrames(root).flatMap((frame) =>
    frame.members.flatMap((index) => {
      const { status, output } = frame.states.get(index) ?? NOT_RUN
      const answers = graph.nodes[index]?.type === 'webhook_response' && status === 'succeeded' && output !== UNKNOWN
      return answers ? [{ priority: [...frame.priority, graph.position[index] ?? 0], output }] : []
    }),
  )
  return responses.sort((a, b) => comparePriority(a.priority, b.priority)).at(-1)?.output
}
