import { errorText } from '../base/errors.ts'
import type { Logger } from './ports.ts'

const INTERVAL_MS = 60_000

/** Builds the indexes that a vector database lacks: when the program starts, and soon after a model first appears. */
export class VectorUpkeep {
  readonly #build: (signal: AbortSignal) => Promise<void>
  readonly #log: Logger
  readonly #abort = new AbortController()
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(build: (signal: AbortSignal) => Promise<void>, log: Logger) {
    this.#build = build
    this.#log = log
  }

  start(): void {
    this.#running ??= this.#build(this.#abort.signal)
      .catch((error: unknown) => {
        if (!this.#abort.signal.aborted) this.#log.warn({ reason: errorText(error) }, 'a vector index was not built')
      })
      .finally(() => (this.#running = undefined))
    this.#timer ??= setInterval(() => this.start(), INTERVAL_MS).unref()
  }

  async close(): Promise<void> {
    this.#abort.abort()
    clearInterval(this.#timer)
    await this.#running
  }
}
