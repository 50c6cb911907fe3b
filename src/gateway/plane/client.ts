import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnswerSink } from './sink.ts'
import type { Turn } from './turn.ts'
import type { Watch, Watched } from './watch.ts'

/** What may wait for a client to read, before the upstream is read on. Contract: gateway.md 6. */
const BUFFER_BYTES = 1024 * 1024
/** A body that nobody wants is read and forgotten so long. */
const LINGER_MS = 1000

/** The connection of a client: adds the headers that every answer has, counts bytes, cuts who stops reading. */
export class Client implements AnswerSink, Watched {
  readonly requestId: string
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #watch: Watch
  readonly #turn: Turn
  readonly #idleMs: number
  /** For the head, names and values in turn. */
  readonly #always: string[]
  #tellGone: (() => void) | undefined
  /** Bytes wait for the client: the connection times out when it takes none of them. */
  #isTimed = false
  bytesOut = 0
  place = -1
  isGone = false

  /** @param idleMs how long a client may read nothing of what waits for it */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    { watch, turn, idleMs }: { watch: Watch; turn: Turn; idleMs: number },
  ) {
    this.requestId = requestId
    this.#request = request
    this.#response = response
    this.#watch = watch
    this.#turn = turn
    this.#idleMs = idleMs
    this.#always = ['x-request-id', requestId, 'request-id', requestId]
  }

  /** The connection has closed, or its answer has gone out whole. */
  closed(): void {
    this.#watch.delete(this)
    if (this.#response.writableFinished) return
    this.isGone = true
    this.#tellGone?.()
  }

  onGone(tell: () => void): void {
    this.#tellGone = tell
  }

  /** For every head from now on, names and values in turn. */
  addHeaders(headers: readonly string[]): void {
    for (const part of headers) this.#always.push(part)
  }

  get hasHead(): boolean {
    return this.#response.headersSent
  }

  get status(): number {
    return this.#response.statusCode
  }

  head(status: number, headers: string[]): void {
    for (const part of this.#always) headers.push(part)
    this.#response.writeHead(status, headers)
  }

  write(chunk: Buffer): boolean {
    this.bytesOut += chunk.length
    const isTaken = this.#response.write(chunk)
    this.#lookAfter()
    return isTaken || this.#response.writableLength <= BUFFER_BYTES
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#response.off('drain', done)
        this.#response.off('close', done)
        resolve()
      }
      this.#response.on('drain', done)
      this.#response.on('close', done)
    })
  }

  end(chunk?: Buffer): void {
    if (chunk) this.bytesOut += chunk.length
    this.#turn.answer(() => {
      if (this.#request.complete) this.#response.end(chunk)
      else this.#endUnread(chunk)
      this.#lookAfter()
    })
  }

  /** Who takes an answer at once, as nearly all do, is not watched. */
  #lookAfter(): void {
    if (this.#response.writableLength > 0 && this.place < 0 && !this.isGone) this.#watch.add(this)
  }

  /** An answer to a body that was not read: closing at once would reset the connection before the answer is seen. */
  #endUnread(chunk: Buffer | undefined): void {
    if (chunk) this.#response.write(chunk)
    const timer = setTimeout(() => this.#response.end(() => this.#request.destroy()), LINGER_MS)
    const end = (): void => {
      clearTimeout(timer)
      this.#response.end()
    }
    this.#request.once('end', end)
    this.#request.once('close', end)
    this.#request.resume()
  }

  /** Ends the connection. */
  cut(): void {
    this.#response.destroy()
  }

  /** The timeout of a socket knows how much of a write the system has taken; while nothing waits, silence is no fault. */
  tick(): void {
    const isWaiting = this.#response.writableLength > 0
    if (isWaiting === this.#isTimed) return
    this.#isTimed = isWaiting
    this.#response.setTimeout(isWaiting ? this.#idleMs : 0)
  }
}
