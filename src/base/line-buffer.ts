import { write, writeSync } from 'node:fs'

/** Lines are written many at a time: each by itself costs more than to answer a request. */
const BUFFER_BYTES = 64 * 1024
const BUFFER_MS = 100
/** The most that a unit of a text takes. */
const UNIT_BYTES = 3
/** What may wait for a slow reader; what comes then is lost. */
const WAITING_BYTES = 16 * 2 ** 20
const RETRY_MS = 100
/** How often a reader that takes nothing is asked again when the program ends. */
const LAST_TRIES = 20
const LINE_END = 10

/**
 * Lines on their way to a file. They are put down as bytes as they come: texts put together of many small ones, as lines are,
 * are a burden to every collection that they wait through. Lines that cannot be written, on a disk that is full or to a reader
 * that is gone, are lost: they must not stop the program that they tell of.
 */
export class LineBuffer {
  /** Bytes that could not be written, and of which nobody was told yet. */
  lost = 0
  /** Tells of them, once lines can be written again. */
  whenBack?: (lost: number) => void
  readonly #fd: number
  readonly #bytes = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #length = 0
  #timer: NodeJS.Timeout | undefined
  /** On the way, the first one being written. */
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #isWriting = false
  /** What was written last was no line's end. */
  #isOpen = false
  /** And its rest is lost: the next line is not to stand behind it. */
  #isCut = false

  constructor(fd: number) {
    this.#fd = fd
  }

  write(line: string): void {
    if (!this.#timer) this.#start()
    const most = line.length * UNIT_BYTES
    if (this.#length + most > BUFFER_BYTES) this.flush()
    if (most > BUFFER_BYTES) this.#send(Buffer.from(line))
    else this.#length += this.#bytes.write(line, this.#length)
  }

  flush(): void {
    if (this.#length === 0) return
    const lines = Buffer.from(this.#bytes.subarray(0, this.#length))
    this.#length = 0
    this.#send(lines)
  }

  #start(): void {
    this.#timer = setInterval(() => this.flush(), BUFFER_MS).unref()
    process.once('beforeExit', () => this.flush())
    process.once('exit', () => this.#end())
  }

  #send(lines: Buffer): void {
    if (this.#waitingBytes + lines.length > WAITING_BYTES) {
      this.lost += lines.length
      return
    }
    this.#waiting.push(lines)
    this.#waitingBytes += lines.length
    if (!this.#isWriting) this.#writeNext()
  }

  #writeNext(): void {
    this.#endCutLine()
    const [lines] = this.#waiting
    this.#isWriting = lines !== undefined
    if (!lines) return
    write(this.#fd, lines, (error, written) => {
      if (isBusy(error)) {
        setTimeout(() => this.#writeNext(), RETRY_MS)
        return
      }
      this.#waiting.shift()
      this.#waitingBytes -= lines.length
      this.#isCut = error !== null && this.#isOpen
      if (error) this.lost += lines.length
      else this.#hasWritten(lines, written)
      this.#writeNext()
    })
  }

  #hasWritten(lines: Buffer, written: number): void {
    this.#isOpen = lines[written - 1] !== LINE_END
    if (written < lines.length) this.#putBack(lines.subarray(written))
    else if (this.lost > 0) this.#tellLost()
  }

  #putBack(rest: Buffer): void {
    this.#waiting.unshift(rest)
    this.#waitingBytes += rest.length
  }

  #endCutLine(): void {
    const next = this.#isCut ? this.#waiting.shift() : undefined
    if (!next) return
    this.#isCut = false
    this.#waitingBytes -= next.length
    this.#putBack(Buffer.concat([Buffer.of(LINE_END), next]))
  }

  #tellLost(): void {
    const lost = this.lost
    this.lost = 0
    this.whenBack?.(lost)
  }

  /** The last lines. What is being written will be, beside these. */
  #end(): void {
    const isUnderWay = this.#isWriting
    this.#isWriting = true // nothing else begins
    this.flush()
    this.#endCutLine()
    for (const lines of this.#waiting.slice(isUnderWay ? 1 : 0)) {
      if (!writeNow(this.#fd, lines)) return
    }
  }
}

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EBUSY')

/** Whether all of it was written. */
function writeNow(fd: number, bytes: Buffer): boolean {
  let from = 0
  for (let tries = 0; from < bytes.length && tries < LAST_TRIES; tries++) {
    try {
      from += writeSync(fd, bytes, from)
      tries = 0
    } catch (error) {
      if (!isBusy(error)) return false
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
    }
  }
  return from === bytes.length
}
