import pino from 'pino'

/** Lines are written many at a time: each by itself costs more than to answer a request. */
const BUFFER_LENGTH = 64 * 1024
const BUFFER_MS = 100

/**
 * Lines on their way to a file. They are joined when they are written: a stream that joins them as they come copies all that
 * waits for each.
 */
export class LineBuffer {
  readonly #fd: number
  #lines: string[] = []
  #length = 0
  #timer: NodeJS.Timeout | undefined
  #stream: ReturnType<typeof pino.destination> | undefined

  constructor(fd: number) {
    this.#fd = fd
  }

  write(line: string): void {
    this.#lines.push(line)
    this.#length += line.length
    if (!this.#timer) this.#start()
    if (this.#length >= BUFFER_LENGTH) this.flush()
  }

  flush(): void {
    if (this.#lines.length === 0) return
    const text = this.#lines.join('')
    this.#lines = []
    this.#length = 0
    this.#open().write(text)
  }

  #start(): void {
    this.#timer = setInterval(() => this.flush(), BUFFER_MS).unref()
    process.once('beforeExit', () => this.flush())
    process.once('exit', () => {
      this.flush()
      this.#stream?.flushSync()
    })
  }

  /** Pino ends its streams when nothing is left to do; more may come after that. */
  #open(): ReturnType<typeof pino.destination> {
    this.#stream ??= pino.destination({ fd: this.#fd, sync: false }).once('close', () => (this.#stream = undefined))
    return this.#stream
  }
}
