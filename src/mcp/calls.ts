import type { Id } from './frames.ts'

/** The reason of a signal: nothing is answered to a call that was cancelled. */
export const CANCELLED = new DOMException('cancelled', 'AbortError')

/** The calls of one session that run now, so that a later message can end them by their id. */
export class Calls {
  readonly #running: Map<string, AbortController>
  readonly #session: string

  /** Sessions whose messages come one by one share what runs in all of them. */
  constructor(running = new Map<string, AbortController>(), session = '') {
    this.#running = running
    this.#session = session
  }

  /** Runs a call, which ends with `ending`. */
  async run<T>(id: Id, work: (ending: AbortController) => Promise<T>): Promise<T> {
    const key = this.#keyOf(id)
    const ending = new AbortController()
    this.#running.set(key, ending)
    try {
      return await work(ending)
    } finally {
      if (this.#running.get(key) === ending) this.#running.delete(key)
    }
  }

  /** Nothing happens when no such call runs: it may just have ended. */
  cancel(id: unknown): void {
    this.#running.get(this.#keyOf(id))?.abort(CANCELLED)
  }

  /** The ids 1 and "1" are two. */
  #keyOf(id: unknown): string {
    return JSON.stringify([this.#session, id])
  }
}
