import { Heap } from '../heap.ts'
import type { Frame } from './state.ts'

/** A node of a pass that may start. */
export interface Task {
  readonly frame: Frame
  readonly node: number
  readonly priority: readonly number[]
  readonly controller: AbortController
  readonly run: () => Promise<void>
}

/** Some nodes of a pass of which at most `limit` run at once. */
interface Region {
  readonly frame: Frame
  readonly nodes: ReadonlySet<number>
  readonly limit: number
}

/** Starts ready tasks in plan order while fewer than `concurrency` run. Contract: runbook.md 4.1. */
export class Scheduler {
  readonly running = new Set<Task>()
  readonly regions: Region[] = []
  private readonly ready = new Heap<Task>((a, b) => comparePriority(a.priority, b.priority))
  private readonly concurrency: number
  private readonly idle: () => void
  private readonly crash: (error: unknown) => void
  /** Of a pass in here only these nodes start: what else is ready waits for their failure to be final. */
  private readonly draining = new Map<Frame, { nodes: Set<number>; done: () => void }>()
  /** Tasks that wait for others of their own (loops) and need no slot. */
  private waiting = 0
  private pumping = false

  /** `idle` is called when nothing runs and nothing can start; `crash` with a fault of ours. */
  constructor(concurrency: number, idle: () => void, crash: (error: unknown) => void) {
    this.concurrency = concurrency
    this.idle = idle
    this.crash = crash
  }

  add(task: Task): void {
    this.ready.push(task)
  }

  /** Starts what may start. */
  pump(): void {
    if (this.pumping) return
    this.pumping = true
    const held: Task[] = []
    while (this.running.size - this.waiting < this.concurrency) {
      const task = this.ready.pop()
      if (!task) break
      if (isStopped(task.frame)) continue
      if (this.isBlocked(task)) held.push(task)
      else this.start(task)
    }
    for (const task of held) this.ready.push(task)
    this.pumping = false
    this.checkDrained()
    if (this.running.size === 0) this.idle()
  }

  /** Runs `wait` without taking a slot. */
  async yieldSlot<T>(wait: () => Promise<T>): Promise<T> {
    this.waiting++
    try {
      return await wait()
    } finally {
      this.waiting--
    }
  }

  /** Lets the nodes of a region, and what they contain, end before `done`. */
  drain(frame: Frame, nodes: ReadonlySet<number>, done: () => void): void {
    const drained = this.draining.get(frame)
    if (drained) for (const node of nodes) drained.nodes.add(node)
    else this.draining.set(frame, { nodes: new Set(nodes), done })
  }

  /** Cancels the running tasks that `matches` finds. */
  cancel(matches: (task: Task) => boolean): void {
    for (const task of this.running) if (matches(task)) task.controller.abort()
  }

  private start(task: Task): void {
    this.running.add(task)
    task.run().then(() => this.ended(task), this.crash)
  }

  private ended(task: Task): void {
    this.running.delete(task)
    this.pump()
  }

  private isBlocked({ frame, node }: Task): boolean {
    if (this.isHeld(frame, node)) return true
    return this.regions.some(
      (region) => region.frame === frame && region.nodes.has(node) && this.inside(region) >= region.limit,
    )
  }

  /** Whether a pass around the node drains others than the one it belongs to. */
  private isHeld(frame: Frame, node: number | undefined): boolean {
    if (this.draining.size === 0 || node === undefined) return false
    const drained = this.draining.get(frame)
    if (drained && !drained.nodes.has(node)) return true
    return frame.parent !== undefined && this.isHeld(frame.parent, frame.opener)
  }

  private inside({ frame, nodes }: Pick<Region, 'frame' | 'nodes'>): number {
    let count = 0
    for (const task of this.running) if (task.frame === frame && nodes.has(task.node)) count++
    return count
  }

  private checkDrained(): void {
    for (const [frame, { nodes, done }] of this.draining) {
      if (this.inside({ frame, nodes }) > 0) continue
      this.draining.delete(frame)
      done()
    }
  }
}

const isStopped = (frame: Frame): boolean => {
  for (let at: Frame | undefined = frame; at; at = at.parent) if (at.stopped) return true
  return false
}

/** Orders by the first difference; what is outside comes before what is inside it. */
export function comparePriority(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = (a[i] ?? 0) - (b[i] ?? 0)
    if (order !== 0) return order
  }
  return a.length - b.length
}
