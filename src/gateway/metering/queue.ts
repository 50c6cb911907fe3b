import type { UsageRecord } from '../model.ts'
import { toUsageRow } from '../store/usage-record.ts'
import type { UsageRow } from '../store/usage.ts'
import { Digest } from './digest.ts'
import type { Content } from './metering.ts'

/** A record that waits to be written. */
export interface Waiting {
  readonly row: UsageRow
  readonly content: Content | undefined
}

/** Records that will be written together, and what they come to. */
export interface Pile {
  readonly waiting: Waiting[]
  readonly digest: Digest
  bytes: number
}

const MAX_ROWS = 50_000
const MAX_BYTES = 64 * 1024 * 1024
/** About what a record and one of its attempts take; counted, not measured: measuring would cost more than the record. */
const RECORD_BYTES = 1000
const ATTEMPT_BYTES = 200

/**
 * Records in memory, in their order, as the rows that they will be: a record itself is many small things, which every
 * collection that it waits through would copy. Contract: gateway.md 7.1.
 */
export class Queue {
  readonly #pileRows: number
  #piles: Pile[] = []
  #bytes = 0
  length = 0

  /** @param pileRows so many are written together at most */
  constructor(pileRows: number) {
    this.#pileRows = pileRows
  }

  get isFull(): boolean {
    return this.length >= MAX_ROWS || this.#bytes >= MAX_BYTES
  }

  push(record: UsageRecord, content: Content | undefined): void {
    const pile = this.#open()
    const row = toUsageRow(record)
    pile.waiting.push({ row, content })
    pile.digest.add(record, row.started_at)
    const bytes = bytesOf(record, content)
    pile.bytes += bytes
    this.#bytes += bytes
    this.length++
  }

  /** The first ones. */
  take(): Pile | undefined {
    const pile = this.#piles.shift()
    this.#bytes -= pile?.bytes ?? 0
    this.length -= pile?.waiting.length ?? 0
    return pile
  }

  /** They found no place elsewhere: they are first again. */
  putBack(pile: Pile): void {
    this.#piles.unshift(pile)
    this.#bytes += pile.bytes
    this.length += pile.waiting.length
  }

  #open(): Pile {
    const last = this.#piles.at(-1)
    if (last && last.waiting.length < this.#pileRows) return last
    const pile = { waiting: [], digest: new Digest(), bytes: 0 }
    this.#piles.push(pile)
    return pile
  }
}

const bytesOf = ({ attempts }: UsageRecord, content: Content | undefined): number =>
  RECORD_BYTES + attempts.length * ATTEMPT_BYTES + (content ? content.request.length + content.response.length : 0)
