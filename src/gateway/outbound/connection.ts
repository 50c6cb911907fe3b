import type { Socket } from 'node:net'
import { asError } from '../../base/errors.ts'
import type { AnswerHead } from './answer-head.ts'
import { AnswerReader, type AnswerEvents } from './answer-reader.ts'
import { NetworkError, type AnswerHandler, type Line } from './dispatcher.ts'

/** So small a body goes out as one text with its head, which takes 4 % off a small call. */
const SMALL_BYTES = 16 * 1024

/** Who has connections. */
export interface ConnectionOwner {
  /** It may serve another request. @param keepAliveMs how long the other side says that it keeps it */
  freed(connection: Connection, keepAliveMs: number | undefined): void
  /** It was closed in the middle of a request, of which nobody wants to know more. */
  aborted(connection: Connection): void
  closed(connection: Connection): void
}

/** A connection that stands: it serves one request after the other. */
export class Connection implements AnswerEvents, Line {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly #reader = new AnswerReader(this)
  #handler: AnswerHandler | undefined
  /** Of the answer that comes. */
  #head: AnswerHead | undefined
  /** While it is idle: until when it may be used; monotonic, in ms. 0: it has not been kept yet. */
  usableUntil = 0

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket
    this.#owner = owner
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('end', () => {
      if (!this.#reader.close()) this.#fail(closed())
    })
    socket.on('error', (error: Error) => this.#fail(error))
    socket.on('close', () => {
      this.#fail(closed())
      owner.closed(this)
    })
  }

  /** Whether an idle one may serve a request. @param now monotonic, in ms */
  isUsable(now: number): boolean {
    return this.usableUntil > now && !this.#socket.destroyed
  }

  /** It must be idle. @param head of the request, as it goes over the wire */
  send(head: string, body: Buffer, handler: AnswerHandler): void {
    this.#handler = handler
    handler.onConnect(this)
    // Given up meanwhile.
    if (!this.#handler) return
    if (body.length <= SMALL_BYTES) return void this.#socket.write(head + body.toString('latin1'), 'latin1')
    this.#socket.cork()
    this.#socket.write(head, 'latin1')
    this.#socket.write(body)
    this.#socket.uncork()
  }

  abort(handler: AnswerHandler): void {
    if (this.#handler !== handler) return
    this.#handler = undefined
    this.#socket.destroy()
    this.#owner.aborted(this)
  }

  resume(handler: AnswerHandler): void {
    if (this.#handler === handler) this.#socket.resume()
  }

  /** Whoever waits for an answer is told. */
  destroy(): void {
    this.#fail(closed())
  }

  head(head: AnswerHead): void {
    this.#head = head
    this.#handler?.onHeaders(head.status, head.fields)
  }

  body(content: Buffer): void {
    if (this.#handler?.onData(content) === false) this.#socket.pause()
  }

  end(isClean: boolean): void {
    const handler = this.#handler
    if (!handler) return
    this.#handler = undefined
    // When an answer is there before its request has gone out, the rest of that would be taken for another request.
    if (isClean && this.#head?.keepsOpen === true && this.#socket.writableLength === 0) {
      this.#socket.resume()
      this.#owner.freed(this, this.#head.keepAliveMs)
    } else this.#socket.destroy()
    handler.onComplete()
  }

  #read(bytes: Buffer): void {
    // Nobody has asked.
    if (!this.#handler) return void this.#socket.destroy()
    try {
      this.#reader.read(bytes)
    } catch (error) {
      this.#fail(asError(error))
    }
  }

  #fail(error: Error): void {
    const handler = this.#handler
    this.#handler = undefined
    this.#socket.destroy()
    handler?.onError(error)
  }
}

const closed = (): Error => new NetworkError('ECONNRESET', 'the other side closed the connection')
