/** One event of a stream. Source: WHATWG HTML, server-sent events. */
export interface StreamEvent {
  /** `message` unless named. */
  readonly event: string
  readonly data: string
}

const MAX_EVENT_BYTES = 16 * 1024 * 1024
const LF = 0x0a
const CR = 0x0d

/** An event beyond 16 MiB. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError'
}

/**
 * Reads server-sent events from bytes split anywhere: LF, CR LF and CR, comments, a byte-order mark, data of many lines.
 * Contract: gateway.md 6.
 */
export class EventReader {
  /** The pieces of a line whose end has not come. */
  #pieces: Buffer[] = []
  #data: string[] = []
  /** Of the event so far. */
  #bytes = 0
  #event = ''
  #isFirst = true
  /** The last line ended with CR: an LF that follows belongs to it. */
  #afterCr = false

  /** The events that these bytes complete. @throws EventTooLargeError */
  read(chunk: Buffer): StreamEvent[] {
    const events: StreamEvent[] = []
    const hasCr = chunk.includes(CR)
    let at = this.#afterCr && chunk[0] === LF ? 1 : 0
    if (chunk.length > 0) this.#afterCr = false
    for (let end = endOfLine(chunk, at, hasCr); end >= 0; end = endOfLine(chunk, at, hasCr)) {
      const event = this.#line(this.#textTo(chunk, at, end))
      if (event) events.push(event)
      const isCr = chunk[end] === CR
      at = isCr && chunk[end + 1] === LF ? end + 2 : end + 1
      this.#afterCr = isCr && at === chunk.length && end + 1 === at
    }
    if (at < chunk.length) {
      this.#count(chunk.length - at)
      this.#pieces.push(chunk.subarray(at))
    }
    return events
  }

  /** A line that ends in this chunk. */
  #textTo(chunk: Buffer, from: number, end: number): string {
    this.#count(end - from)
    if (this.#pieces.length === 0) return chunk.toString('utf8', from, end)
    const line = Buffer.concat([...this.#pieces, chunk.subarray(from, end)])
    this.#pieces = []
    return line.toString('utf8')
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_EVENT_BYTES) throw new EventTooLargeError('an event is above 16 MiB')
  }

  #line(text: string): StreamEvent | undefined {
    const line = this.#isFirst && text.startsWith('\uFEFF') ? text.slice(1) : text
    this.#isFirst = false
    if (line === '') return this.#complete()
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') this.#data.push(value)
    else if (field === 'event') this.#event = value
    return undefined
  }

  #complete(): StreamEvent | undefined {
    const event = this.#data.length > 0 ? { event: this.#event || 'message', data: this.#data.join('\n') } : undefined
    this.#data = []
    this.#event = ''
    this.#bytes = 0
    return event
  }
}

function endOfLine(bytes: Buffer, from: number, hasCr: boolean): number {
  const lf = bytes.indexOf(LF, from)
  if (!hasCr) return lf
  const cr = bytes.subarray(from, lf < 0 ? bytes.length : lf).indexOf(CR)
  return cr < 0 ? lf : from + cr
}
