import type { Id } from './frames.ts'

/** The calls of one session that run now, so that a later message can end them by their id. */
export class Calls {
  readonly #running: Map<string, AbortController>
  readonly #session: string

  /** Sessions whose messages come one by one share what runs in all of them. */
  constructor(running = new Map<string, AbortController>(), session = '') {
    this.#running = running
    this.#session = session
  }

  /** Runs a call; the signal is for `cancel`. */
  async run<T>(id: Id, work: (cancelled: AbortSignal) => Promise<T>): Promise<T> {
    const key = this.#keyOf(id)
    const controller = new AbortController()
    this.#running.set(key, controller)
    try {
      return await work(controller.signal)
    } finally {
      if (this.#running.get(key) === controller) this.#running.delete(key)
    }
  }

  /** Nothing happens when no such call runs: it may just have ended. */
  cancel(id: unknown): void {
    this.#running.get(this.#keyOf(id))?.abort()
  }

  /** The ids 1 and "1" are two. */
  #keyOf(id: unknown): string {
    return JSON.stringify([this.#session, id])
  }
}
