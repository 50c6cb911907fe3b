import { workflowDigest } from './digest.ts'
import { nodeError } from './errors.ts'
import type { Graph } from './graph.ts'
import { textsIn } from './hcl/functions/conversion.ts'
import { EvaluationError, KnownAfterRun } from './hcl/errors.ts'
import { evaluate } from './hcl/evaluate.ts'
import { fromJson } from './hcl/json.ts'
import { newMap, type Value } from './hcl/values.ts'
import type { Workflow, WorkflowNode } from './model.ts'
import type { Effects } from './node-types.ts'
import { activeNodes, InvalidRunError, runValues, validGraph } from './prepare.ts'
import { requirements, type Requirements } from './requirements.ts'
import { failureFields } from './run/attempts.ts'
import { evaluateConfig, shownConfig } from './run/config.ts'
import type { RunOptions } from './run/options.ts'
import { fromRecord } from './run/record.ts'
import { durationMs, retryPolicy, type RetryPolicy } from './run/retry.ts'
import { NodeScope } from './run/node-scope.ts'
import { evaluateLocals, type RunValues } from './run/scope.ts'
import { Frame, KNOWN_AFTER_RUN, UNKNOWN, type NodeState, type Output } from './run/state.ts'
import { triggerValues } from './run/trigger.ts'

/** What a run would do, as far as it is known before. Contract: runbook.md 8. */
export interface Plan {
  readonly planVersion: 1
  readonly workflow: { readonly name: string; readonly file: string; readonly digest: string }
  /** In plan order. */
  readonly nodes: readonly PlanNode[]
  readonly requires: Requirements
}

interface PlanNode {
  readonly id: string
  readonly type: string
  readonly typeAs?: string
  readonly description?: string
  readonly effects: Effects
  /** A run that resumes doesn't execute it. */
  readonly reused?: true
  readonly incoming: readonly PlanEdge[]
  /** Resolved attributes; what isn't known yet, or secret, is marked. */
  readonly config: Value
  readonly retry?: RetryPolicy | typeof KNOWN_AFTER_RUN
  readonly timeoutMs?: number | typeof KNOWN_AFTER_RUN
  /** Its attributes can't be evaluated. */
  readonly error?: string
}

interface PlanEdge {
  readonly from: string
  readonly on: string
  readonly condition?: string
  readonly when?: string
}

type PlanOptions = Omit<RunOptions, 'signal' | 'journal' | 'onEvent' | 'dryRun' | 'confirm'>

/** @throws InvalidWorkflowError, InvalidRunError (a local that can't be evaluated too) */
export function planWorkflow(workflow: Workflow, options: PlanOptions): Plan {
  const graph = validGraph(workflow, options)
  const values = runValues(graph, options, [])
  const planner = new Planner(graph, values, localsOf(values), options)
  const active = activeNodes(graph, options)
  const nodes = graph.order.filter((index) => active?.has(index) ?? true).flatMap((index) => planner.node(index))
  // what a later node marks as secret is one in the earlier ones too
  const mask = (value: Value): Value => values.masking.value(value)
  return {
    planVersion: 1,
    workflow: { name: workflow.name, file: workflow.file, digest: workflowDigest(workflow) },
    nodes: nodes.map((node) => ({ ...node, config: mask(node.config) })),
    requires: requirements(workflow, options.registry),
  }
}

function localsOf(values: RunValues): ReadonlyMap<string, Value> {
  try {
    return evaluateLocals(values)
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error
    throw new InvalidRunError(failureFields(nodeError(error), values.masking).message)
  }
}

/** Evaluates every node against outputs that aren't known, but those of triggers, mocks and finished nodes. */
class Planner {
  private readonly graph: Graph
  private readonly values: RunValues
  private readonly options: PlanOptions
  private readonly locals: ReadonlyMap<string, Value>
  private readonly frames = new Map<number | undefined, Frame>()

  constructor(graph: Graph, values: RunValues, locals: ReadonlyMap<string, Value>, options: PlanOptions) {
    this.graph = graph
    this.values = values
    this.locals = locals
    this.options = options
  }

  node(index: number): PlanNode[] {
    const { graph, options } = this
    const node = graph.nodes[index]
    if (!node) return []
    const { id, type, typeAs, description } = node
    const state = this.frame(graph.owner[index]).states.get(index)
    const incoming = (graph.incoming[index] ?? []).map(({ edge: { from, on, condition, when } }) => ({
      from,
      on,
      ...(condition && { condition: condition.range.text }),
      ...(when && { when: when.range.text }),
    }))
    const { config, retry, timeoutMs, error } = this.resolved(node)
    return [
      {
        id,
        type,
        ...(typeAs !== undefined && { typeAs }),
        ...(description !== undefined && { description }),
        effects: options.registry.metadata(type)?.effects ?? 'external',
        ...(state?.reused && { reused: true }),
        incoming,
        config,
        ...(retry && { retry }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(error !== undefined && { error }),
      },
    ]
  }

  private resolved(node: WorkflowNode): Pick<PlanNode, 'config' | 'retry' | 'timeoutMs' | 'error'> {
    const { registry } = this.options
    const metadata = registry.metadata(node.type)
    const scope = new NodeScope(
      this.values,
      this.locals,
      this.frame(this.graph.owner[node.index]),
      node.index,
      this.prev(node),
    )
    try {
      const config = metadata && evaluateConfig(node, metadata, scope)
      for (const [name, { sensitive }] of Object.entries(metadata?.inputSchema?.properties ?? {})) {
        if (sensitive) for (const text of textsIn(config?.values[name] ?? null)) this.values.masking.add(text)
      }
      const { timeout } = node
      const timeoutMs = timeout ? later(() => durationMs(evaluate(timeout, scope))) : metadata?.timeoutMs
      return {
        config: config ? shownConfig(config) : newMap(),
        ...(node.retry && { retry: later(() => retryPolicy(node, scope)) }),
        ...(timeoutMs !== undefined && { timeoutMs }),
      }
    } catch (thrown) {
      const error = nodeError(thrown)
      return { config: newMap(), error: failureFields(error, this.values.masking).message }
    }
  }

  /** The pass of a body, over an unknown item. */
  private frame(opener: number | undefined): Frame {
    const known = this.frames.get(opener)
    if (known) return known
    const members = this.graph.order.filter((index) => this.graph.owner[index] === opener)
    const frame =
      opener === undefined
        ? new Frame(this.graph, members)
        : new Frame(this.graph, members, this.frame(this.graph.owner[opener]), {
            opener,
            index: 0,
            item: UNKNOWN,
            count: 1,
          })
    this.frames.set(opener, frame)
    frame.unknownVariables = opener !== undefined || members.some((index) => this.graph.nodes[index]?.type === 'set')
    for (const index of members) frame.states.set(index, this.state(index))
    return frame
  }

  private state(index: number): NodeState {
    const { id = '', type = '' } = this.graph.nodes[index] ?? {}
    const { registry, resume, mocks = {}, triggerData } = this.options
    const finished = fromRecord(resume?.nodes.get(id))
    if (finished) return finished
    const known = { status: 'succeeded', attempts: [], durationMs: 0 } as const
    if (Object.hasOwn(mocks, id)) return { ...known, output: fromJson(mocks[id]), mocked: true }
    if (registry.metadata(type)?.category === 'trigger') {
      return { ...known, output: triggerValues(triggerData).payload }
    }
    return { ...known, status: 'simulated', output: UNKNOWN }
  }

  private prev({ index }: WorkflowNode): Output {
    const sources = this.graph.incoming[index] ?? []
    const [only] = sources
    if (!only) return null
    return sources.length === 1 ? (this.frame(this.graph.owner[index]).state(only.from)?.output ?? UNKNOWN) : UNKNOWN
  }
}

function later<T>(read: () => T): T | typeof KNOWN_AFTER_RUN {
  try {
    return read()
  } catch (error) {
    if (error instanceof KnownAfterRun) return KNOWN_AFTER_RUN
    throw error
  }
}
