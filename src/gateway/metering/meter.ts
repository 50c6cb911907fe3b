import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { backOff } from '../../base/back-off.ts'
import type { Clock } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import type { Database } from '../../database/database.ts'
import type { Logger } from '../../platform/ports.ts'
import type { Sealer } from '../../platform/sealing/sealer.ts'
import { GatewayError } from '../errors.ts'
import type { UsageRecord } from '../model.ts'
import { endBefore } from '../../http/deadline.ts'
import { fromLine, prepare, toLine, type Batch, type Entry } from './batch.ts'
import type { ProcessBudgets } from './budgets.ts'
import type { Digest } from './digest.ts'
import type { Content, Metering } from './metering.ts'
import { Queue } from './queue.ts'
import { Spill } from './spill.ts'
import { writeBatch } from './writer.ts'

export interface MeterParts {
  database: Database
  clock: Clock
  log: Logger
  sealer: Sealer
  budgets: ProcessBudgets
  processId: string
  dataDir: string
  /** `gateway.flush_interval`, ms. */
  flushIntervalMs: number
  /** `gateway.flush_rows`. */
  flushRows: number
  /** `gateway.on_metering_full`. */
  onFull: 'reject' | 'drop'
  /** In [0, 1): for back-off. */
  random?: () => number
  /** Of the spill file. */
  spillBytes?: number
  /** The database has so long to take what is written at once. */
  writeTimeoutMs?: number
}

const SPILL_BYTES = 1024 ** 3
const WRITE_TIMEOUT_MS = 5000
const FIRST_WAIT_MS = 250
const MOST_WAIT_MS = 5000
/** Pages of the spill file that are written before what came meanwhile is looked after. */
const PAGES = 4

/** Takes usage records, and writes them off the request path. Contract: gateway.md 7.1. */
export class RequestMeter implements Metering {
  readonly #parts: MeterParts
  readonly #queue: Queue
  readonly #spill: Spill
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined
  #willFlush = false
  /** Records that waited when a flush was asked for last, and still wait. */
  #due = 0
  #isClosing = false
  #failures = 0
  #retryAt = 0
  #isStuck = false
  /** A transaction took too long, and goes on. */
  #isLate = false
  /** As the log was told; until usage is written again. */
  #isSpillBroken = false
  #dropped = 0
  /** Of the page of the spill file that was read last. */
  #page: { process: string; entry: Entry }[] = []
  #pageEnd = 0

  constructor(parts: MeterParts) {
    this.#parts = parts
    const { dataDir, processId, flushRows, spillBytes = SPILL_BYTES } = parts
    this.#queue = new Queue(flushRows)
    this.#spill = new Spill(join(dataDir, 'gateway-spill.jsonl'), processId, spillBytes)
  }

  /** Begins to write, with what earlier processes left. */
  async start(): Promise<void> {
    await this.#spill.open()
    this.#timer = setInterval(() => void this.flush(), this.#parts.flushIntervalMs).unref()
  }

  admit(): void {
    if (this.#parts.onFull === 'reject' && this.#queue.isFull) {
      throw new GatewayError('metering_unavailable', 'usage cannot be recorded now: try again soon', {
        retryAfterMs: 1000,
      })
    }
  }

  record(record: UsageRecord, content?: Content): void {
    if (this.#parts.onFull === 'drop' && this.#queue.isFull) {
      this.#dropped++
      return
    }
    this.#queue.push(record, content)
    if (this.#queue.length < this.#parts.flushRows || this.#willFlush || this.#isStuck) return
    this.#willFlush = true
    setImmediate(() => {
      this.#willFlush = false
      void this.flush()
    })
  }

  /** For metrics: what waits, what found no room, what lies in the spill file. */
  figures(): { queue: number; dropped: number; spillBytes: number } {
    return { queue: this.#queue.length, dropped: this.#dropped, spillBytes: this.#spill.bytes }
  }

  /** Writes what waits, to the database or, while that is away, to the spill file. It never rejects. */
  flush(): Promise<void> {
    this.#due = this.#queue.length
    this.#flushing ??= this.#flush()
      .catch((error: unknown) => {
        this.#parts.log.error({ reason: errorText(error) }, 'usage could not be written; it waits in memory')
      })
      .finally(() => (this.#flushing = undefined))
    return this.#flushing
  }

  /** Nothing is lost: what cannot be written is in the spill file for the next process. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#isClosing = true
    await this.#flushing
    await this.flush()
    if (this.#queue.length === 0) return
    this.#parts.log.error({ records: this.#queue.length }, 'usage is lost: neither database nor spill file takes it')
  }

  async #flush(): Promise<void> {
    this.#isStuck = false
    do {
      const pile = this.#queue.take()
      if (pile) {
        this.#due -= pile.waiting.length
        const entries = await prepare(this.#parts, pile.waiting)
        const isDone = this.#spill.isEmpty
          ? (await this.#write(entries, pile.digest)) || (await this.#setAside(entries))
          : (await this.#setAside(entries)) || (await this.#writePast(entries, pile.digest))
        if (!isDone) {
          this.#queue.putBack(pile)
          this.#isStuck = true
        }
      }
      if (this.#queue.length < this.#parts.flushRows || this.#isStuck) await this.#replay()
      await nextTurn()
      // What came meanwhile waits for its own time: a transaction for a few costs nearly as much as for many.
    } while ((!this.#isStuck && (this.#due > 0 || this.#queue.length >= this.#parts.flushRows)) || this.#canReplay())
    // Whoever is left was refused, or written by another process: nothing will come of them here any more.
    if (this.#spill.isEmpty && !this.#isStuck) this.#parts.budgets.unsettled.clear()
  }

  /** False when the database does not take them. */
  async #write(entries: readonly Entry[], digest: Digest): Promise<boolean> {
    const { log } = this.#parts
    if (this.#isLate) return false
    try {
      await this.#writeInTime({ entries, digest, isOwn: true, isAgain: false })
      this.#recovered('usage is written again')
      return true
    } catch (error) {
      this.#fail()
      if (this.#failures === 1) {
        log.error({ reason: errorText(error) }, 'usage cannot be written: it goes to gateway-spill.jsonl for now')
      }
      return false
    }
  }

  /** Beside a spill file that takes nothing: what lies there may be unreadable for long, and the database well. */
  async #writePast(entries: readonly Entry[], digest: Digest): Promise<boolean> {
    if (this.#isLate) return false
    return this.#writeInTime({ entries, digest, isOwn: true, isAgain: false }).then(
      () => true,
      () => false,
    )
  }

  /**
   * @throws also when the database takes too long. The transaction goes on: it may succeed, and a slow database would never get
   * anywhere if all its work were thrown away; until it has ended nothing else is written there.
   */
  async #writeInTime(batch: Batch): Promise<void> {
    const { database, budgets, writeTimeoutMs = WRITE_TIMEOUT_MS } = this.#parts
    const deadline = AbortSignal.timeout(writeTimeoutMs)
    const work = writeBatch(database, budgets, batch, deadline).finally(() => (this.#isLate = false))
    await endBefore(deadline, work, () => {
      this.#isLate = true
      return new Error(`the database took longer than ${writeTimeoutMs} ms`)
    })
  }

  #recovered(message: string): void {
    if (this.#failures > 0) this.#parts.log.info({}, message)
    this.#failures = 0
    this.#isSpillBroken = false
  }

  #fail(): void {
    const { clock, random } = this.#parts
    this.#retryAt = clock.now() + backOff(++this.#failures, FIRST_WAIT_MS, MOST_WAIT_MS, random)
  }

  /** False when there is no room. */
  async #setAside(entries: readonly Entry[]): Promise<boolean> {
    try {
      return await this.#spill.append(entries.map((entry) => toLine(this.#parts.processId, entry)))
    } catch (error) {
      if (!this.#isSpillBroken) this.#parts.log.error({ reason: errorText(error) }, 'the spill file cannot be written')
      this.#isSpillBroken = true
      return false
    }
  }

  #canReplay(): boolean {
    if (this.#spill.isEmpty || this.#isLate || this.#isClosing) return false
    const wait = this.#retryAt - this.#parts.clock.now()
    return wait <= 0 || wait > MOST_WAIT_MS // a clock that was set back must not hold usage up
  }

  /** Writes what lies in the spill file, in its order; not before the database had its rest. */
  async #replay(): Promise<void> {
    const { log } = this.#parts
    if (!this.#canReplay()) return
    try {
      for (let page = 0; page < PAGES && this.#canReplay(); page++) await this.#replayPage()
    } catch (error) {
      this.#fail()
      log.warn({ reason: errorText(error), attempt: this.#failures }, 'the spill file cannot be replayed yet')
      return
    }
    if (this.#spill.isEmpty) this.#recovered('usage is written again; the spill file is done with')
    this.#failures = 0
  }

  async #replayPage(): Promise<void> {
    if (this.#page.length === 0 && !(await this.#readPage())) return
    const [first] = this.#page
    const own = this.#page.findIndex(({ process }) => process !== first?.process)
    const count = Math.min(own === -1 ? this.#page.length : own, this.#parts.flushRows)
    const entries = this.#page.slice(0, count).map(({ entry }) => entry)
    if (first) await this.#writeAgain(entries, first.process === this.#parts.processId)
    this.#page.splice(0, count)
    if (this.#page.length === 0) this.#spill.advance(this.#pageEnd)
  }

  /** False when there is nothing more. */
  async #readPage(): Promise<boolean> {
    const found = await this.#spill.read()
    if (!found) return false
    this.#page = found.lines.flatMap((line) => {
      const known = fromLine(line)
      if (!known && line !== '') this.#parts.log.warn({}, 'a line of the spill file is no usage record: it is left out')
      return known ? [known] : []
    })
    this.#pageEnd = found.end
    return true
  }

  /** What the database refuses for what it is, alone, would keep all that comes after it from being written. */
  async #writeAgain(entries: readonly Entry[], isOwn: boolean): Promise<void> {
    const { log } = this.#parts
    try {
      await this.#writeInTime({ entries, isOwn, isAgain: true })
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (entries.length > 1) {
        for (const entry of entries) await this.#writeAgain([entry], isOwn)
        return
      }
      this.#dropped++
      log.error(
        { reason: errorText(error), id: entries[0]?.row.id },
        'the database refuses a usage record: it is left out',
      )
    }
  }
}

/** Whether it is about the values, whenever they come: constraints, sizes, data exceptions. */
function isRefusal(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)|^2[23]...$/.test(code)
}
