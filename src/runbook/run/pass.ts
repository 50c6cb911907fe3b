import type { NodeFailure } from '../errors.ts'
import type { GraphEdge } from '../graph.ts'
import type { EdgeState, Frame, Output } from './state.ts'

interface PassHooks {
  /** All incoming edges of the node are resolved, or enough for its join, and one is live. */
  ready(pass: Pass, node: number): void
  /** All incoming edges are dead. */
  unreached(pass: Pass, node: number): void
}

/** The edges of one frame as they resolve. */
export class Pass {
  readonly frame: Frame
  /** Called once, when all nodes are settled, or with the failure that ended the pass. */
  readonly done: (failure?: NodeFailure) => void
  /** Regions of splits in which a failure lets the other branches end. */
  readonly tolerant: ReadonlySet<number>[] = []
  /** Passes of the bodies that nodes of this one open. */
  readonly loopFrames = new Map<number, readonly Frame[]>()
  private readonly hooks: PassHooks
  private readonly members: ReadonlySet<number>
  /** Incoming edges, and loops that end here, still to resolve. */
  private readonly waiting = new Map<number, number>()
  private readonly live = new Map<number, GraphEdge[]>()
  private readonly loopOutputs = new Map<number, Output>()
  private readonly released = new Set<number>()
  private left: number

  constructor(frame: Frame, done: (failure?: NodeFailure) => void, hooks: PassHooks) {
    this.frame = frame
    this.hooks = hooks
    this.members = new Set(frame.members)
    this.left = frame.members.length
    let ended = false
    this.done = (failure) => {
      if (ended) return
      ended = true
      done(failure)
    }
    const { graph } = frame
    for (const node of frame.members) {
      const edges = (graph.incoming[node] ?? []).filter(({ from }) => this.waitsFor(from, node))
      this.waiting.set(node, edges.length + (graph.gathers.get(node) ?? 0))
    }
  }

  has(node: number): boolean {
    return this.members.has(node)
  }

  /** Nodes that wait for nothing. */
  starts(): number[] {
    return this.frame.members.filter((node) => this.waiting.get(node) === 0)
  }

  /** Live incoming edges in order of declaration. */
  liveEdges(node: number): GraphEdge[] {
    return this.arrivals(node).toSorted((a, b) => a.edge.index - b.edge.index)
  }

  /** Live incoming edges in order of arrival. */
  arrivals(node: number): readonly GraphEdge[] {
    return this.live.get(node) ?? []
  }

  /** The output of the loop that the join gathers. */
  loopOutput(join: number): Output | undefined {
    return this.loopOutputs.get(join)
  }

  resolve(edge: GraphEdge, state: EdgeState): void {
    this.frame.edges.set(edge, state)
    if (state !== 'dead' && !this.released.has(edge.to)) {
      const live = this.live.get(edge.to)
      if (live) live.push(edge)
      else this.live.set(edge.to, [edge])
    }
    this.arrived(edge.to)
  }

  /** The loop that `join` gathers has ended. */
  resolveLoop(join: number, live: boolean, output: Output): void {
    if (!this.has(join)) return
    if (live) this.loopOutputs.set(join, output)
    this.arrived(join)
  }

  /** One more node is settled. */
  settled(): void {
    if (--this.left === 0) this.done()
  }

  private arrived(node: number): void {
    const waiting = (this.waiting.get(node) ?? 0) - 1
    this.waiting.set(node, waiting)
    if (this.released.has(node)) return
    const live = this.arrivals(node).length > 0 || this.loopOutputs.has(node)
    if (waiting > 0 && !(live && this.takesFirst(node))) return
    this.released.add(node)
    if (live) this.hooks.ready(this, node)
    else this.hooks.unreached(this, node)
  }

  private takesFirst(node: number): boolean {
    const mode = this.frame.graph.nodes[node]?.attributes.get('mode')?.value
    const [part] = mode?.kind === 'template' ? mode.parts : []
    return this.frame.graph.nodes[node]?.type === 'join' && part?.kind === 'text' && part.value === 'first'
  }

  private waitsFor(from: number, node: number): boolean {
    const { opener, graph } = this.frame
    if (from === opener) return true
    return this.has(from) && graph.bodies.get(from)?.join !== node
  }
}
