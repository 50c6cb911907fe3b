import type { Logger } from 'pino'
import { errorText } from '../../base/errors.ts'

export interface ChoreOptions {
  name: string
  intervalMs: number
  log: Logger
  random: () => number
  /** True when there is more of it: it is done again at once. */
  run: () => Promise<boolean>
}

const MAX_INTERVAL_MS = 60_000
const JITTER = 0.2

/** Something done again and again, never twice at once; further apart while it fails. */
export class Chore {
  readonly #options: ChoreOptions
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #failures = 0
  #isStopped = false

  constructor(options: ChoreOptions) {
    this.#options = options
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  async #run(): Promise<void> {
    const { name, intervalMs, log, random, run } = this.#options
    try {
      while (!this.#isStopped && (await run())) continue
      this.#failures = 0
    } catch (error) {
      this.#failures++
      log.warn({ err: error }, `${name} failed: ${errorText(error)}`)
    }
    if (this.#isStopped) return
    const interval = Math.min(intervalMs * 2 ** Math.min(this.#failures, 10), Math.max(intervalMs, MAX_INTERVAL_MS))
    this.#timer = setTimeout(() => this.start(), interval * (1 + JITTER * (2 * random() - 1)))
  }
}
