import type { PlaneLog } from './parts.ts'

interface Settled {
  /** What is left to do for it. */
  settle(): void
}

/**
 * What is done for calls behind their answers, in a row for all that were answered in a turn of the event loop: nobody waits
 * for it, and the same code for many takes less time than between answers.
 */
export class Backlog {
  readonly #log: PlaneLog
  #waiting: Settled[] = []
  #isClosed = false

  constructor(log: PlaneLog) {
    this.#log = log
  }

  add(one: Settled): void {
    const isFirst = this.#waiting.push(one) === 1
    if (this.#isClosed) this.#work()
    else if (isFirst) setImmediate(() => this.#work())
  }

  /** From now on nothing waits. */
  close(): void {
    this.#isClosed = true
    this.#work()
  }

  #work(): void {
    const all = this.#waiting
    this.#waiting = []
    for (const one of all) {
      try {
        one.settle()
      } catch (error) {
        this.#log.error({ err: error }, 'a call could not be counted')
      }
    }
  }
}
