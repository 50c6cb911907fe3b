interface Waiter<T> {
  readonly attempt: () => T | undefined
  readonly finish: (got: T | undefined) => void
}

/** Who waits for a free slot, first come first served. Contract: gateway.md 4.6. */
export class Line<T> {
  readonly #length: number
  readonly #waitMs: number
  readonly #waiters = new Set<Waiter<T>>()

  constructor(length: number, waitMs: number) {
    this.#length = length
    this.#waitMs = waitMs
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0
  }

  get isFull(): boolean {
    return this.#waiters.size >= this.#length
  }

  /** Lets everyone in line try again, in turn: something was given back. */
  pump(): void {
    for (const waiter of this.#waiters) {
      const got = waiter.attempt()
      if (got !== undefined) waiter.finish(got)
    }
  }

  /**
   * What `attempt` gives as soon as it gives something; undefined when the longest wait is over.
   * @throws the signal's reason, in the turn in which it aborts
   */
  wait(attempt: () => T | undefined, signal: AbortSignal): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter)
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
      }
      const abort = (): void => {
        leave()
        reject(signal.reason instanceof Error ? signal.reason : new Error('The wait was given up'))
      }
      const waiter: Waiter<T> = {
        attempt,
        finish: (got) => {
          leave()
          resolve(got)
        },
      }
      const timer = setTimeout(() => waiter.finish(attempt()), this.#waitMs)
      if (signal.aborted) return abort()
      signal.addEventListener('abort', abort)
      this.#waiters.add(waiter)
    })
  }
}
