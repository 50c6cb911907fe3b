import { broken, readHead, type AnswerHead } from './answer-head.ts'
import { ChunkedBody } from './chunked-body.ts'

/** Who is told what is read of an answer. */
export interface AnswerEvents {
  head(head: AnswerHead): void
  body(content: Buffer): void
  /** @param isClean no byte came behind the end */
  end(isClean: boolean): void
}

/** With those of `100 Continue` and the like before it. */
const MOST_HEAD_BYTES = 16 * 1024
const BLANK_LINE = Buffer.from('\r\n\r\n')

/** Reads answers of HTTP/1.1, one after the other, from bytes in any pieces. */
export class AnswerReader {
  readonly #events: AnswerEvents
  /** The begin of a head. */
  #held: Buffer | undefined
  #headBytes = 0
  /** Undefined until the head is there; of a body of known length, what is still to come. */
  #body: number | ChunkedBody | 'until_close' | undefined
  readonly #tell = (content: Buffer): void => this.#events.body(content)

  constructor(events: AnswerEvents) {
    this.#events = events
  }

  /** Up to the end of the answer: what follows belongs to none. @throws NetworkError `EPROTO` */
  read(bytes: Buffer): void {
    const all = this.#held ? Buffer.concat([this.#held, bytes]) : bytes
    this.#held = undefined
    let at = 0
    while (at < all.length)
      at = this.#body === undefined ? this.#readHead(all, at) : this.#readBody(all, at, this.#body)
  }

  /** The other side says no more. @returns whether that ends an answer, which is told then */
  close(): boolean {
    if (this.#body !== 'until_close') return false
    this.#end(true)
    return true
  }

  /** @returns where to read on */
  #readHead(bytes: Buffer, at: number): number {
    const found = bytes.indexOf(BLANK_LINE, at)
    const end = found < 0 ? bytes.length : found
    if (this.#headBytes + end - at > MOST_HEAD_BYTES) throw broken('its head is too long')
    if (found < 0) {
      this.#held = bytes.subarray(at)
      return end
    }
    this.#headBytes += end - at
    const next = end + BLANK_LINE.length
    const head = readHead(bytes.toString('latin1', at, end))
    if (head.status < 200) return next
    this.#body = head.body === 'chunked' ? new ChunkedBody() : head.body
    this.#events.head(head)
    return head.body === 0 ? this.#endAt(bytes, next) : next
  }

  #readBody(bytes: Buffer, at: number, body: number | ChunkedBody | 'until_close'): number {
    if (body instanceof ChunkedBody) {
      const next = body.read(bytes, at, this.#tell)
      return body.isOver ? this.#endAt(bytes, next) : next
    }
    const left = body === 'until_close' ? Infinity : body
    const end = Math.min(bytes.length, at + left)
    this.#events.body(bytes.subarray(at, end))
    if (body === 'until_close') return end
    this.#body = left - (end - at)
    return this.#body === 0 ? this.#endAt(bytes, end) : end
  }

  #endAt(bytes: Buffer, at: number): number {
    this.#end(at === bytes.length)
    return bytes.length
  }

  #end(isClean: boolean): void {
    this.#body = undefined
    this.#headBytes = 0
    this.#events.end(isClean)
  }
}
