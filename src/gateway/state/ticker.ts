import { backOff } from '../../base/back-off.ts'
import { errorText } from '../../base/errors.ts'
import type { Logger } from '../../platform/ports.ts'

const MOST_MS = 10_000

/** Does some work again and again, one run after the other; after failures it comes back later each time, and says so once. */
export class Ticker {
  readonly #everyMs: number
  readonly #work: () => Promise<void>
  readonly #log: Logger
  readonly #name: string
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #failures = 0
  #isClosed = false

  /** @param name of the work, for the log */
  constructor(name: string, everyMs: number, work: () => Promise<void>, log: Logger) {
    this.#name = name
    this.#everyMs = everyMs
    this.#work = work
    this.#log = log
  }

  start(): void {
    const wait = this.#failures === 0 ? this.#everyMs : this.#everyMs + backOff(this.#failures, this.#everyMs, MOST_MS)
    this.#timer = setTimeout(() => {
      this.#running = this.#run()
    }, wait).unref()
  }

  /** Ends when a run under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running
  }

  /** Ends with the work done once more: a process that goes must not stumble over a database that has gone before it. */
  async finish(): Promise<void> {
    await this.close()
    try {
      await this.#work()
    } catch (error) {
      this.#log.error({ reason: errorText(error) }, `${this.#name} failed at the end: what was not written is lost`)
    }
  }

  async #run(): Promise<void> {
    try {
      await this.#work()
      if (this.#failures > 0) this.#log.info({}, `${this.#name} works again`)
      this.#failures = 0
    } catch (error) {
      if (this.#failures++ === 0)
        this.#log.error({ reason: errorText(error) }, `${this.#name} failed; it is tried again`)
    }
    if (!this.#isClosed) this.start()
  }
}
