import type { UsageRecord } from '../model.ts'
import type { Content } from './metering.ts'

/** A record that waits to be written. */
export interface Waiting {
  readonly record: UsageRecord
  readonly content: Content | undefined
}

const MAX_ROWS = 50_000
const MAX_BYTES = 64 * 1024 * 1024
/** About what a record and one of its attempts take; counted, not measured: measuring would cost more than the record. */
const RECORD_BYTES = 1000
const ATTEMPT_BYTES = 200

/** Records in memory, in their order. Contract: gateway.md 7.1. */
export class Queue {
  #waiting: Waiting[] = []
  #bytes = 0

  get length(): number {
    return this.#waiting.length
  }

  get isFull(): boolean {
    return this.#waiting.length >= MAX_ROWS || this.#bytes >= MAX_BYTES
  }

  push(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#bytes += bytesOf(waiting)
  }

  /** The first ones, so many at most. */
  take(count: number): Waiting[] {
    const taken = this.#waiting.splice(0, count)
    for (const waiting of taken) this.#bytes -= bytesOf(waiting)
    return taken
  }

  /** They found no place elsewhere: they are first again. */
  putBack(waiting: readonly Waiting[]): void {
    this.#waiting = [...waiting, ...this.#waiting]
    for (const each of waiting) this.#bytes += bytesOf(each)
  }
}

const bytesOf = ({ record, content }: Waiting): number =>
  RECORD_BYTES +
  record.attempts.length * ATTEMPT_BYTES +
  (content ? content.request.length + content.response.length : 0)
