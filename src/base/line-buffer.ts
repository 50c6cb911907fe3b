import pino from 'pino'

/** Lines are written many at a time: each by itself costs more than to answer a request. */
const BUFFER_BYTES = 64 * 1024
const BUFFER_MS = 100
/** The most that a unit of a text takes. */
const UNIT_BYTES = 3

/**
 * Lines on their way to a file. They are put down as bytes as they come: texts put together of many small ones, as lines are,
 * are a burden to every collection that they wait through.
 */
export class LineBuffer {
  readonly #fd: number
  readonly #bytes = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #length = 0
  #timer: NodeJS.Timeout | undefined
  #stream: ReturnType<typeof pino.destination> | undefined

  constructor(fd: number) {
    this.#fd = fd
  }

  write(line: string): void {
    if (!this.#timer) this.#start()
    const most = line.length * UNIT_BYTES
    if (this.#length + most > BUFFER_BYTES) this.flush()
    if (most > BUFFER_BYTES) this.#open().write(line)
    else this.#length += this.#bytes.write(line, this.#length)
  }

  flush(): void {
    if (this.#length === 0) return
    const lines = this.#bytes.toString('utf8', 0, this.#length)
    this.#length = 0
    this.#open().write(lines)
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
