import { NetworkError, type AnswerHandler, type Dispatcher, type OutboundRequest } from './dispatcher.ts'
import type { Connect } from './connect.ts'
import { Pool } from './pool.ts'
import { headOf } from './request-head.ts'

interface OutboundParts {
  readonly connectMs: number
  /** How to connect to an origin. */
  readonly connector: (origin: URL) => Connect
}

/**
 * A way out over HTTP/1.1: connections by origin, kept for the next request. Our own because it is on the path of every call:
 * a proxy that does nothing else takes 37 us a call with it, and 48 with undici's pool and parser.
 */
export class Outbound implements Dispatcher {
  readonly #parts: OutboundParts
  readonly #origins = new Map<string, { readonly pool: Pool; readonly host: string }>()
  #isClosed = false

  constructor(parts: OutboundParts) {
    this.#parts = parts
  }

  /** @throws TypeError when the request holds what none can carry */
  dispatch(request: OutboundRequest, body: Buffer, handler: AnswerHandler): void {
    if (this.#isClosed) return handler.onError(new NetworkError('ECONNRESET', 'the way out is closed'))
    const { pool, host } = this.#origins.get(request.origin) ?? this.#open(request.origin)
    pool.send(headOf(request, host, body.length), body, handler)
  }

  destroy(): void {
    this.#isClosed = true
    for (const { pool } of this.#origins.values()) pool.destroy()
  }

  #open(origin: string) {
    const { connectMs, connector } = this.#parts
    const url = new URL(origin)
    const emptied = (): void => void this.#origins.delete(origin)
    const opened = { host: url.host, pool: new Pool({ connect: connector(url), connectMs, emptied }) }
    this.#origins.set(origin, opened)
    return opened
  }
}
