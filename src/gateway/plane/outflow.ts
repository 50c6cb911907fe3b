import { KEPT_BYTES } from './kept-content.ts'
import type { AnswerSink } from './sink.ts'
import type { Watch } from './watch.ts'

/** Start frames that may be held, in number and bytes. Contract: gateway.md 6. */
const HELD_FRAMES = 64
const HELD_BYTES = 256 * 1024
const HEARTBEAT_MS = 15_000

interface OutflowParts {
  readonly sink: AnswerSink
  readonly watch: Watch
  /** Keeps what the client is told, up to a bound. */
  readonly keepsContent: boolean
  /** Writes the head. */
  readonly begin: () => void
  /** The client has read what waited for it. */
  readonly resume: () => void
}

/** A stream's way to the client: held until it says something, kept open, paused while the client does not read. */
export class Outflow {
  readonly #parts: OutflowParts
  readonly #held: Buffer[] = []
  #heldBytes = 0
  #keptBytes = 0
  #lastWriteAt: number
  /** Of what the client was told, for `content_logging`. */
  readonly content: Buffer[] = []
  /** From here on there is no other candidate. */
  isCommitted = false
  isPaused = false
  bytes = 0

  constructor(parts: OutflowParts) {
    this.#parts = parts
    this.#lastWriteAt = parts.watch.now
  }

  /** @param says whether these bytes, or those before, say something: from then on nothing is held */
  take(bytes: readonly Buffer[], says: boolean): void {
    if (this.isCommitted) return this.#write(bytes)
    this.#held.push(...bytes)
    for (const { length } of bytes) this.#heldBytes += length
    if (says || this.#held.length > HELD_FRAMES || this.#heldBytes > HELD_BYTES) this.commit()
  }

  commit(): void {
    this.isCommitted = true
    this.#parts.begin()
    this.#write(this.#held.splice(0))
  }

  /** Writes a heartbeat when nothing went out for long; an empty one waits for its next turn. */
  beat(now: number, heartbeat: Buffer | undefined): void {
    if (now - this.#lastWriteAt < HEARTBEAT_MS) return
    this.#lastWriteAt = now
    if (heartbeat) this.#write([heartbeat])
  }

  keep(bytes: Buffer): void {
    if (!this.#parts.keepsContent || this.#keptBytes >= KEPT_BYTES) return
    this.content.push(bytes.subarray(0, KEPT_BYTES - this.#keptBytes))
    this.#keptBytes += bytes.length
  }

  #write(bytes: readonly Buffer[]): void {
    const { sink, watch } = this.#parts
    for (const each of bytes) {
      if (each.length === 0) continue
      this.keep(each)
      this.bytes += each.length
      this.#lastWriteAt = watch.now
      if (!sink.write(each)) void this.#pause()
    }
  }

  async #pause(): Promise<void> {
    if (this.isPaused) return
    this.isPaused = true
    await this.#parts.sink.drained()
    this.isPaused = false
    this.#parts.resume()
  }
}
