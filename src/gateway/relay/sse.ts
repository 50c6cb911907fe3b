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
    let at = this.#afterCr && chunk[0] === LF ? 1 : 0
    if (chunk.length > 0) this.#afterCr = false
    for (let end = endOfLine(chunk, at); end >= 0; end = endOfLine(chunk, at)) {
      this.#keep(chunk.subarray(at, end))
      const event = this.#line(Buffer.concat(this.#pieces))
      if (event) events.push(event)
      this.#pieces = []
      const isCr = chunk[end] === CR
      at = isCr && chunk[end + 1] === LF ? end + 2 : end + 1
      this.#afterCr = isCr && at === chunk.length && end + 1 === at
    }
    this.#keep(chunk.subarray(at))
    return events
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > MAX_EVENT_BYTES) throw new EventTooLargeError('an event is above 16 MiB')
    if (piece.length > 0) this.#pieces.push(piece)
  }

  #line(bytes: Buffer): StreamEvent | undefined {
    let line = bytes.toString('utf8')
    if (this.#isFirst && line.startsWith('\uFEFF')) line = line.slice(1)
    this.#isFirst = false
    if (line === '') return this.#complete()
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
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

function endOfLine(bytes: Buffer, from: number): number {
  const lf = bytes.indexOf(LF, from)
  const cr = bytes.subarray(from, lf < 0 ? bytes.length : lf).indexOf(CR)
  return cr < 0 ? lf : from + cr
}
