import type { Dispatcher } from 'undici'
import type { Upstream, UpstreamRequest } from '../kinds/upstream.ts'

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

/**
 * One request to a provider. It takes undici's raw callbacks, which hand on headers and chunks as they were read: the wrapped
 * ones build an object of the headers for every answer.
 */
export class Wire implements Dispatcher.DispatchHandler {
  status = 0
  /** Of an answer that is read whole. */
  readonly chunks: Buffer[] = []
  /** Which of the calls that answer a request together. */
  readonly part: number
  /** Names and values in turn. */
  #head: readonly Buffer[] = []
  readonly #events: WireEvents
  #abort: (() => void) | undefined
  #isOver = false
  /** Reads on. */
  resume: () => void = () => undefined

  constructor(events: WireEvents, part: number) {
    this.#events = events
    this.part = part
  }

  send({ dispatcher }: Upstream, { origin, path, method, headers }: UpstreamRequest, body: Buffer): void {
    if (this.#isOver) return
    dispatcher.dispatch({ origin, path, method, headers, body }, this)
  }

  /** Closes the connection, at once or as soon as it stands; nothing is told of it. */
  cut(): void {
    this.#isOver = true
    this.#abort?.()
  }

  onConnect(abort: () => void): void {
    this.#abort = abort
    if (this.#isOver) abort()
    else this.#events.sent()
  }

  onHeaders(status: number, head: Buffer[], resume: () => void): boolean {
    if (status < 200 || this.#isOver) return true
    this.status = status
    this.#head = head
    this.resume = resume
    this.#events.answered(this)
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#isOver || this.#events.data(this, chunk)
  }

  onComplete(): void {
    if (this.#isOver) return
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
    for (let i = 0; i + 1 < this.#head.length; i += 2) {
      if (isNamed(this.#head[i], names)) return this.#head[i + 1]?.toString('latin1')
    }
    return undefined
  }

  headers(): Record<string, string> {
    const headers: Record<string, string> = {}
    for (let i = 0; i + 1 < this.#head.length; i += 2) {
      headers[String(this.#head[i]).toLowerCase()] = this.#head[i + 1]?.toString('latin1') ?? ''
    }
    return headers
  }
}

const EMPTY: Buffer = Buffer.alloc(0)

/** Most headers are not looked at beyond their length. */
function isNamed(header: Buffer | undefined, names: readonly string[]): boolean {
  for (const name of names) {
    if (header?.length === name.length && header.toString('latin1').toLowerCase() === name) return true
  }
  return false
}
