/** A request as it goes out, but for its body. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'PUT'
  /** `https://host:port` */
  readonly origin: string
  readonly path: string
  /** Names and values in turn, such as a header can carry; those of the connection are added. */
  readonly headers: readonly string[]
}

/** The connection that serves a request, as long as it does: later it may serve another. */
export interface Line {
  /** Closes it, whatever it is at; the handler is told nothing more. */
  abort(handler: AnswerHandler): void
  /** Reads on. */
  resume(handler: AnswerHandler): void
}

/** Who is told what comes of a request. Must not throw. */
export interface AnswerHandler {
  /** The connection stands, and the request goes out. */
  onConnect(line: Line): void
  /** @param fields names, in small letters, and values in turn */
  onHeaders(status: number, fields: readonly string[]): void
  /** False: nothing more until `resume`, but for what has been read already. */
  onData(chunk: Buffer): boolean
  onComplete(): void
  /** @param error NetworkError, AddressRefusedError, or one of the system's */
  onError(error: Error): void
}

/** A way out. It waits for answers without limit: who calls sets the limits. */
export interface Dispatcher {
  dispatch(request: OutboundRequest, body: Buffer, handler: AnswerHandler): void
}

/** What went wrong on the way, by the names that the system has for it. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
  readonly code: 'ECONNRESET' | 'EPROTO' | 'ETIMEDOUT'

  constructor(code: NetworkError['code'], message: string) {
    super(message)
    this.code = code
  }
}
