import type { Clock } from '../../base/clock.ts'
import type { Usage } from '../chat/events.ts'

/** An answer as JSON, in the dialect of who asked. */
export interface Answer {
  readonly body: Buffer
  /** Reported or estimated: for a stream whose client asks for it. */
  readonly usage: Usage
  /** The value of `x-mem-dropped`. */
  readonly dropped: string | undefined
}

interface Kept {
  readonly answer: Answer
  readonly since: number
  readonly until: number
}

/** What an entry costs beside its body. */
const ENTRY_BYTES = 512

/** Answers in memory: those least recently used make room. Contract: gateway.md 8. */
export class AnswerStore {
  readonly #most: number
  readonly #clock: Clock
  /** In order of use. */
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  /** @param most bytes of all answers together */
  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#clock = clock
  }

  /** With its age in ms. */
  get(key: string): { answer: Answer; ageMs: number } | undefined {
    const kept = this.#kept.get(key)
    if (!kept) return undefined
    this.#delete(key, kept)
    const now = this.#clock.now()
    if (now >= kept.until || now < kept.since) return undefined // nobody knows its age once the clock was set back
    this.#add(key, kept)
    return { answer: kept.answer, ageMs: now - kept.since }
  }

  /** @returns whether there was room */
  set(key: string, answer: Answer, ttlMs: number): boolean {
    const old = this.#kept.get(key)
    if (old) this.#delete(key, old)
    const since = this.#clock.now()
    const kept = { answer, since, until: since + ttlMs }
    if (sizeOf(kept) > this.#most) return false
    this.#add(key, kept)
    for (const [oldest, other] of this.#kept) {
      if (this.#bytes <= this.#most) break
      this.#delete(oldest, other)
    }
    return true
  }

  #add(key: string, kept: Kept): void {
    this.#kept.set(key, kept)
    this.#bytes += sizeOf(kept)
  }

  #delete(key: string, kept: Kept): void {
    this.#kept.delete(key)
    this.#bytes -= sizeOf(kept)
  }
}

const sizeOf = ({ answer }: Kept): number => answer.body.length + ENTRY_BYTES
