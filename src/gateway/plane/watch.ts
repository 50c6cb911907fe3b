import { Roster, type Listed } from './roster.ts'

const TICK_MS = 25

/** Something with time limits of its own. */
export interface Watched extends Listed {
  /** Comes some forty times a second; `now` is monotonic. */
  tick(now: number): void
}

/**
 * One timer for the time limits of all calls: setting one, or moving it with every byte, is a plain assignment. Limits hold to
 * some 25 ms.
 */
export class Watch {
  readonly #monotonic: () => number
  readonly #watched = new Roster<Watched>()
  #timer: NodeJS.Timeout | undefined
  /** As of the last tick. */
  now: number

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
    this.now = monotonic()
  }

  add(watched: Watched): void {
    if (!this.#timer) {
      this.now = this.#monotonic()
      this.#timer = setInterval(() => this.#tick(), TICK_MS).unref()
    }
    this.#watched.add(watched)
  }

  delete(watched: Watched): void {
    this.#watched.delete(watched)
  }

  #tick(): void {
    this.now = this.#monotonic()
    this.#watched.each((watched) => watched.tick(this.now))
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
