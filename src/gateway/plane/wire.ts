import type { Upstream } from '../kinds/upstream.ts'
import { recordOf } from '../outbound/answer-head.ts'
import type { AnswerHandler, Line, OutboundRequest } from '../outbound/dispatcher.ts'

/** What comes of one request to a provider. Nothing comes any more once it was cut. */
export interface WireEvents {
  /** The connection stands, and the request goes out. */
  sent(): void
  /** The head of the answer. */
  answered(wire: Wire): void
  /** False: nothing more until `resume`. */
  data(wire: Wire, chunk: Buffer): boolean
  ended(wire: Wire): void
  failed(wire: Wire, error: Error): void
}

/** One request to a provider. */
export class Wire implements AnswerHandler {
  status = 0
  /** Of an answer that is read whole. */
  readonly chunks: Buffer[] = []
  readonly request: OutboundRequest
  /** Which of the calls that answer a request together. */
  readonly part: number
  /** Of the answer: names, in small letters, and values in turn. */
  #fields: readonly string[] = []
  readonly #events: WireEvents
  #line: Line | undefined
  #isOver = false

  constructor(events: WireEvents, request: OutboundRequest, part: number) {
    this.#events = events
    this.request = request
    this.part = part
  }

  send({ dispatcher }: Upstream, body: Buffer): void {
    if (!this.#isOver) dispatcher.dispatch(this.request, body, this)
  }

  /** Reads on. */
  resume(): void {
    this.#line?.resume(this)
  }

  /** Closes the connection, at once or as soon as it stands; nothing is told of it. */
  cut(): void {
    this.#isOver = true
    this.#line?.abort(this)
  }

  onConnect(line: Line): void {
    this.#line = line
    if (this.#isOver) line.abort(this)
    else this.#events.sent()
  }

  onHeaders(status: number, fields: readonly string[]): void {
    this.status = status
    this.#fields = fields
    this.#events.answered(this)
  }

  onData(chunk: Buffer): boolean {
    return this.#events.data(this, chunk)
  }

  onComplete(): void {
    this.#isOver = true
    this.#events.ended(this)
  }

  onError(error: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#events.failed(this, error)
  }

  get body(): Buffer {
    const [first = EMPTY] = this.chunks
    return this.chunks.length > 1 ? Buffer.concat(this.chunks) : first
  }

  /** The first of these headers that the answer has; names in small letters. */
  header(names: readonly string[]): string | undefined {
    for (let i = 0; i + 1 < this.#fields.length; i += 2) {
      if (names.includes(this.#fields[i] ?? '')) return this.#fields[i + 1]
    }
    return undefined
  }

  headers(): Record<string, string> {
    return recordOf(this.#fields)
  }
}

const EMPTY: Buffer = Buffer.alloc(0)
