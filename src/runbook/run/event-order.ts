import type { RunEvent } from './options.ts'
import { comparePriority } from './scheduler.ts'

interface Held {
  readonly event: RunEvent
  readonly priority: readonly number[]
}

/** Holds the events of a node until all earlier nodes have settled. Contract: runbook.md 4.1. */
export class EventOrder {
  private readonly emit: (event: RunEvent) => void
  /** Places of the nodes outside every body, in plan order; those of a body count as their loop. */
  private readonly places: readonly number[]
  private readonly held = new Map<number, Held[]>()
  private readonly settled = new Set<number>()
  private next = 0

  /** With no `places`, events pass at once. */
  constructor(places: readonly number[], emit: (event: RunEvent) => void) {
    this.places = places
    this.emit = emit
  }

  /** `priority` is the place of the event's node, behind those of the loops around it. */
  add(event: RunEvent, priority: readonly number[]): void {
    const [place = 0] = priority
    if (this.places.length === 0) {
      this.emit(event)
      return
    }
    const isFirst = place === this.places[this.next]
    if (isFirst && priority.length === 1) this.emit(event)
    else this.hold(place, { event, priority })
    if (event.event === 'node.finished' && priority.length === 1) this.settled.add(place)
    if (!isFirst || !this.settled.has(place)) return
    let first: number | undefined = place
    for (; first !== undefined && this.settled.has(first); first = this.places[++this.next]) this.release(first)
    if (first !== undefined) this.releaseOwn(first)
  }

  /** The run has ended. */
  flush(): void {
    for (const place of this.places.slice(this.next)) this.release(place)
    this.next = this.places.length
  }

  private hold(place: number, held: Held): void {
    const group = this.held.get(place)
    if (group) group.push(held)
    else this.held.set(place, [held])
  }

  /** What a node that goes on has said itself; its body is ordered when it has settled. */
  private releaseOwn(place: number): void {
    const group = this.held.get(place) ?? []
    this.held.set(
      place,
      group.filter(({ priority }) => priority.length > 1),
    )
    for (const { event, priority } of group) if (priority.length === 1) this.emit(event)
  }

  private release(place: number): void {
    const group = this.held.get(place) ?? []
    this.held.delete(place)
    for (const { event } of group.sort((a, b) => comparePriority(a.priority, b.priority))) this.emit(event)
  }
}
