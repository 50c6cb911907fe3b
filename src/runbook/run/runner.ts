import { systemClock, type Clock } from '../../base/clock.ts'
import { nodeError, type NodeFailure } from '../errors.ts'
import { regionJoin, type Graph, type GraphEdge } from '../graph.ts'
import { KnownAfterRun } from '../hcl/errors.ts'
import type { Value } from '../hcl/values.ts'
import type { WorkflowNode } from '../model.ts'
import { createOutbound, type Outbound } from '../outbound/index.ts'
import type { GuardOptions } from '../outbound/guard.ts'
import { isConstant } from '../references.ts'
import { AttemptsFailed, failureFields } from './attempts.ts'
import { branchKey, evaluateCondition } from './condition.ts'
import { previous } from './gather.ts'
import { LoopRun, type LoopItems } from './loop.ts'
import { executeNode, type NodeOutcome } from './node.ts'
import type { RunEvent, RunOptions } from './options.ts'
import { EventOrder } from './event-order.ts'
import { Pass } from './pass.ts'
import { fromRecord, nodePath, toRecord } from './record.ts'
import { comparePriority, Scheduler } from './scheduler.ts'
import { NodeScope } from './node-scope.ts'
import type { RunValues } from './scope.ts'
import { Frame, permits, timestamp, UNKNOWN, UNREACHED, type EdgeState, type NodeState, type Output } from './state.ts'

export interface RunOutcome {
  readonly root: Frame
  /** Of failures that end the run, the first in plan order. */
  readonly failure?: NodeFailure
  readonly stoppedBy?: 'signal' | 'timeout'
}

/** The configured memory endpoint may be anywhere that is not refused always. Contract: runbook.md 5.1. */
function guardOptions({ guard = {}, services }: RunOptions): GuardOptions {
  const endpoint = services?.memory?.endpoint
  if (endpoint === undefined || !URL.canParse(endpoint)) return guard
  const { protocol, hostname, port } = new URL(endpoint)
  const memory = `${hostname.replace(/^\[|\]$/g, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
  return { ...guard, allowHosts: [...(guard.allowHosts ?? []), memory] }
}

/** One run of a graph. Contract: runbook.md 4. */
export class Runner {
  readonly graph: Graph
  readonly values: RunValues
  readonly options: RunOptions
  readonly clock: Clock = systemClock
  readonly outbound: Outbound
  private readonly locals: ReadonlyMap<string, Value>
  /** Nodes that take part; absent when all do. */
  private readonly active: ReadonlySet<number> | undefined
  private readonly members = new Map<number | undefined, readonly number[]>()
  private readonly scheduler: Scheduler
  private readonly root: Pass
  private readonly failures: { priority: readonly number[]; failure: NodeFailure }[] = []
  private readonly deferred: (() => void)[] = []
  private readonly events: EventOrder | undefined
  private propagating = false
  private stoppedBy: RunOutcome['stoppedBy']
  private finish: (outcome: RunOutcome) => void = () => undefined
  private crash: (error: unknown) => void = () => undefined

  constructor(
    graph: Graph,
    values: RunValues,
    locals: ReadonlyMap<string, Value>,
    options: RunOptions & { concurrency: number },
    active?: ReadonlySet<number>,
  ) {
    this.graph = graph
    this.values = values
    this.locals = locals
    this.options = options
    this.active = active
    this.outbound = createOutbound({ ...guardOptions(options), ...options.registry.network })
    const idle = (): void => this.finish(this.outcome())
    this.scheduler = new Scheduler(options.concurrency, idle, (error) => this.crash(error))
    const { onEvent, unordered } = options
    const order = graph.order.filter((node) => graph.owner[node] === undefined).map((node) => graph.position[node] ?? 0)
    this.events = onEvent && new EventOrder(unordered ? [] : order, onEvent)
    this.root = this.pass(new Frame(graph, this.membersOf(undefined)), () => undefined)
  }

  /** Runs to the end; failures of nodes are part of the outcome. */
  async run(timeoutMs: number): Promise<RunOutcome> {
    const { signal } = this.options
    const cancel = (): void => this.stop('signal')
    const timer = setTimeout(() => this.stop('timeout'), Math.min(timeoutMs, 2 ** 31 - 1))
    signal?.addEventListener('abort', cancel)
    try {
      return await new Promise<RunOutcome>((resolve, reject) => {
        this.finish = resolve
        this.crash = reject
        if (signal?.aborted) cancel()
        else this.start(this.root)
        this.scheduler.pump()
      })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
      this.outbound.close()
    }
  }

  emit(event: RunEvent['event'], frame: Frame, node: WorkflowNode, detail: Record<string, unknown> = {}): void {
    if (!this.events) return
    const time = timestamp(this.clock.now())
    const priority = [...frame.priority, this.graph.position[node.index] ?? 0]
    this.events.add({ event, time, runId: this.values.run.id, node: nodePath(frame, node.id), ...detail }, priority)
  }

  scope(frame: Frame, node: number, prev: Output): NodeScope {
    return new NodeScope(this.values, this.locals, frame, node, prev)
  }

  /** A pass over the members of a body, or over the nodes outside every body. */
  pass(frame: Frame, done: (failure?: NodeFailure) => void): Pass {
    return new Pass(frame, done, {
      ready: (pass, node) => this.enqueue(pass, node),
      unreached: (pass, node) => this.settle(pass, node, UNREACHED),
    })
  }

  /** The nodes of the body of `owner` that take part, in plan order. */
  membersOf(owner: number | undefined): readonly number[] {
    const known = this.members.get(owner)
    if (known) return known
    const found = this.graph.order.filter(
      (node) => this.graph.owner[node] === owner && (this.active?.has(node) ?? true),
    )
    this.members.set(owner, found)
    return found
  }

  /** Starts a pass: entry edges of a body, nodes without incoming edges elsewhere. */
  start(pass: Pass): void {
    const { opener, iteration } = pass.frame
    const outer = this.propagating
    this.propagating = true // nothing is settled before all starts are known
    if (pass.frame.members.length === 0) pass.done()
    for (const node of pass.starts()) {
      if (this.isOtherTrigger(node)) this.settle(pass, node, UNREACHED)
      else this.enqueue(pass, node)
    }
    if (opener !== undefined && iteration) {
      const entered: NodeState = { status: 'succeeded', output: iteration.item, attempts: [], durationMs: 0 }
      for (const edge of this.graph.outgoing[opener] ?? []) {
        if (pass.has(edge.to)) pass.resolve(edge, this.liveness(pass, edge, entered))
      }
    }
    this.propagating = outer
    this.propagate()
  }

  /** Ends a pass with a failure: nothing of it starts any more, what runs is cancelled. */
  fail(pass: Pass, failure: NodeFailure): void {
    if (pass.frame.stopped) return
    pass.frame.stopped = true
    this.scheduler.cancel((task) => [...task.frame.chain()].includes(pass.frame))
    pass.done(failure)
  }

  private outcome(): RunOutcome {
    this.events?.flush()
    const [first] = this.failures.sort((a, b) => comparePriority(a.priority, b.priority))
    return {
      root: this.root.frame,
      ...(first && { failure: first.failure }),
      ...(this.stoppedBy && { stoppedBy: this.stoppedBy }),
    }
  }

  private stop(by: 'signal' | 'timeout'): void {
    this.stoppedBy ??= by
    this.root.frame.stopped = true
    this.scheduler.cancel(() => true)
    this.scheduler.pump()
  }

  private isOtherTrigger(node: number): boolean {
    const { type, id } = this.graph.nodes[node] ?? {}
    const trigger = this.options.trigger
    return trigger !== undefined && id !== trigger && this.options.registry.metadata(type ?? '')?.category === 'trigger'
  }

  private enqueue(pass: Pass, node: number): void {
    const controller = new AbortController()
    this.scheduler.add({
      frame: pass.frame,
      node,
      priority: [...pass.frame.priority, this.graph.position[node] ?? 0],
      controller,
      run: () => this.life(pass, node, controller.signal),
    })
  }

  /** From the start of a node to its settled state. */
  private async life(pass: Pass, index: number, signal: AbortSignal): Promise<void> {
    const { frame } = pass
    const node = this.graph.nodes[index]
    if (!node) return
    const started = this.clock.now()
    const times = (): Pick<NodeState, 'startedAt' | 'completedAt' | 'durationMs'> => {
      const now = this.clock.now()
      return { startedAt: timestamp(started), completedAt: timestamp(now), durationMs: now - started }
    }
    const opens = this.graph.bodies.has(index)
    const reused = opens ? undefined : fromRecord(this.options.resume?.nodes.get(nodePath(frame, node.id)))
    if (reused) {
      this.assign(frame, node, reused.output)
      this.settle(pass, index, reused)
      return
    }
    this.emit('node.started', frame, node)
    try {
      const outcome = await executeNode(this, pass, node, previous(pass, node), signal)
      this.assign(frame, node, outcome.state.output)
      this.afterSuccess(pass, node, outcome)
      this.settle(pass, index, { attempts: [], ...outcome.state, ...times() })
    } catch (error) {
      this.settleFailure(pass, node, error, signal, times())
    }
  }

  /** The body of an opener, for `executeNode`. */
  loop(pass: Pass, node: WorkflowNode, items: LoopItems, signal: AbortSignal): Promise<Output> {
    return this.scheduler.yieldSlot(() => {
      const result = new LoopRun(this, pass, node.index, items).run(signal)
      this.scheduler.pump()
      return result
    })
  }

  propagate(): void {
    if (this.propagating) return
    this.propagating = true
    for (let next = this.deferred.shift(); next; next = this.deferred.shift()) next()
    this.propagating = false
    this.scheduler.pump()
  }

  private afterSuccess(pass: Pass, node: WorkflowNode, { config }: NodeOutcome): void {
    if (node.type === 'join' && config.cancelOthers === true) this.cancelOthers(pass, node.index)
    if (node.type !== 'split') return
    const limit = typeof config.concurrency === 'number' ? config.concurrency : Infinity
    const mode = config.executionMode
    const failFast = typeof config.failFast === 'boolean' ? config.failFast : mode === undefined || mode === 'failfast'
    const nodes = this.graph.behind(node.index, regionJoin(this.graph, node.index))
    if (limit !== Infinity) this.scheduler.regions.push({ frame: pass.frame, nodes, limit })
    if (!failFast) pass.tolerant.push(nodes)
  }

  /** Cancels running nodes from which every path leads to the join. */
  private cancelOthers(pass: Pass, join: number): void {
    this.scheduler.cancel(({ frame, node }) => {
      if (frame !== pass.frame || !this.graph.isAncestor(node, join)) return false
      return [...this.graph.behind(node, join)].every((other) => this.graph.isAncestor(other, join))
    })
  }

  private assign(frame: Frame, node: WorkflowNode, output: Output): void {
    if (node.type !== 'set' || output === null) return
    if (output === UNKNOWN) frame.unknownVariables = true
    else for (const [name, value] of Object.entries(output)) frame.set(name, { node: node.index, value })
  }

  private settleFailure(
    pass: Pass,
    node: WorkflowNode,
    thrown: unknown,
    signal: AbortSignal,
    times: Pick<NodeState, 'startedAt' | 'completedAt' | 'durationMs'>,
  ): void {
    const attempts = thrown instanceof AttemptsFailed ? thrown.attempts : []
    const error = thrown instanceof AttemptsFailed ? thrown.failure : nodeError(thrown)
    const failure: NodeFailure = {
      ...failureFields(error, this.values.masking),
      node: nodePath(pass.frame, node.id),
      attempts: attempts.length,
    }
    const base = { output: null, error: failure, attempts, ...times }
    if (signal.aborted) {
      this.settle(pass, node.index, { ...base, status: 'cancelled' })
      return
    }
    const policy = error.code === 'no_executor' ? 'fail' : this.onError(node)
    const edges = this.graph.outgoing[node.index] ?? []
    const handled = policy === 'continue' || (policy === 'branch' && edges.some(({ edge }) => edge.on === 'error'))
    const state: NodeState = { ...base, status: 'failed', tolerated: handled, continued: policy === 'continue' }
    if (!handled) this.noteFailure(pass.frame, node.index, failure)
    if (policy !== 'fail') {
      this.settle(pass, node.index, state)
      return
    }
    const frames = pass.loopFrames.get(node.index)
    this.record(pass.frame, node, state)
    pass.frame.states.set(node.index, frames ? { ...state, frames } : state)
    if (error.code === 'no_executor') this.fail(this.root, failure)
    else this.failWithRegion(pass, node.index, failure)
  }

  /** With `failFast = false` the other branches of a split end before the failure takes effect. */
  private failWithRegion(pass: Pass, node: number, failure: NodeFailure): void {
    const region = pass.tolerant.findLast((nodes) => nodes.has(node))
    if (region) this.scheduler.drain(pass.frame, region, () => this.fail(pass, failure))
    else this.fail(pass, failure)
  }

  private noteFailure(frame: Frame, node: number, failure: NodeFailure): void {
    // inside a body the loop decides what the failure means
    if (frame.iteration && failure.code !== 'no_executor') return
    this.failures.push({ priority: [...frame.priority, this.graph.position[node] ?? 0], failure })
  }

  private onError(node: WorkflowNode): NonNullable<WorkflowNode['onError']> {
    if (node.onError) return node.onError
    const branches = (this.graph.outgoing[node.index] ?? []).some(
      ({ edge }) => edge.on === 'error' || edge.on === 'always',
    )
    return branches ? 'branch' : 'fail'
  }

  private record(frame: Frame, node: WorkflowNode, state: NodeState): void {
    if (!state.reused) this.options.journal?.node(toRecord(frame, node.id, state))
    const { status, durationMs, error } = state
    this.emit('node.finished', frame, node, { status, durationMs, ...(error && { error }) })
  }

  /** Fixes the state of a node and resolves its outgoing edges. */
  private settle(pass: Pass, index: number, settled: NodeState): void {
    const node = this.graph.nodes[index]
    if (!node || pass.frame.states.get(index)) return
    const frames = pass.loopFrames.get(index)
    const state = frames ? { ...settled, frames } : settled
    pass.frame.states.set(index, state)
    this.record(pass.frame, node, state)
    if (pass.frame.stopped) return
    this.deferred.push(() => {
      if (pass.frame.stopped) return
      this.resolveOutgoing(pass, index, state)
      pass.settled()
    })
    this.propagate()
  }

  private resolveOutgoing(pass: Pass, index: number, state: NodeState): void {
    const body = this.graph.bodies.get(index)
    for (const edge of this.graph.outgoing[index] ?? []) {
      if (body?.nodes.has(edge.to) || body?.join === edge.to) continue
      const live = this.liveness(pass, edge, state)
      if (pass.has(edge.to)) pass.resolve(edge, live)
      else pass.frame.edges.set(edge, live)
    }
    if (body?.join !== undefined) {
      const live = state.status === 'succeeded' || state.status === 'simulated'
      pass.resolveLoop(body.join, live, state.output)
    }
  }

  private liveness(pass: Pass, { edge, from }: GraphEdge, state: NodeState): EdgeState {
    if (!permits(state, edge.on)) return 'dead'
    const source = this.graph.nodes[from]
    const scope = this.scope(pass.frame, from, state.output)
    try {
      const branching = this.options.registry.metadata(source?.type ?? '')?.branches !== undefined
      if (edge.condition && branching && state.status !== 'simulated') {
        if (state.branch !== undefined && branchKey(edge.condition) !== state.branch) return 'dead'
      } else if (edge.condition && !branching && !isConstant(edge.condition)) {
        if (!evaluateCondition(edge.condition, scope)) return 'dead'
      }
      if (edge.when && !evaluateCondition(edge.when, scope)) return 'dead'
      return state.status === 'simulated' && branching ? 'possible' : 'live'
    } catch (error) {
      if (error instanceof KnownAfterRun) return 'possible'
      this.failEdge(pass, from, error)
      return 'dead'
    }
  }

  private failEdge(pass: Pass, from: number, thrown: unknown): void {
    const node = this.graph.nodes[from]
    if (!node) return
    const fields = failureFields(nodeError(thrown), this.values.masking)
    const failure: NodeFailure = { ...fields, node: nodePath(pass.frame, node.id), attempts: 0 }
    this.noteFailure(pass.frame, from, failure)
    this.fail(pass, failure)
  }
}
