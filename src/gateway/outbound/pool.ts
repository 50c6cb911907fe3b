import type { Connect } from './connect.ts'
import { Connection, type ConnectionOwner } from './connection.ts'
import { NetworkError, type AnswerHandler } from './dispatcher.ts'

/** Longer than most pauses, shorter than the minute or more for which most peers keep connections without saying so. */
const KEEP_MS = 55_000
const KEEP_MOST_MS = 300_000
/** What a request takes to arrive: behind the time that a peer tells, it would find the connection closed. */
const MARGIN_MS = 1000
const SWEEP_MS = 1000

export interface PoolParts {
  readonly connect: Connect
  /** For a connection, in ms. */
  readonly connectMs: number
  /** It has no connections any more. */
  readonly emptied: () => void
}

/** Who waits for a connection. */
interface Waiting {
  connected(connection: Connection): void
  failed(error: Error): void
}

/** The connections to one origin: as many as there are requests at once, and those that are idle. */
export class Pool implements ConnectionOwner {
  readonly #parts: PoolParts
  /** What gives up the connections that are on their way. */
  readonly #opening = new Set<(reason: Error) => void>()
  readonly #connections = new Set<Connection>()
  /** The one that was used last is used next, so that those too many become old. */
  readonly #idle: Connection[] = []
  #sweeper: NodeJS.Timeout | undefined

  constructor(parts: PoolParts) {
    this.#parts = parts
  }

  /** @param head of the request, as it goes over the wire */
  send(head: string, body: Buffer, handler: AnswerHandler): void {
    const now = performance.now()
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      if (idle.isUsable(now)) return idle.send(head, body, handler)
      idle.destroy()
    }
    this.#open({
      connected: (connection) => connection.send(head, body, handler),
      failed: (error) => handler.onError(error),
    })
  }

  freed(connection: Connection, keepAliveMs: number | undefined): void {
    this.#keep(connection, keepAliveMs === undefined ? KEEP_MS : Math.min(keepAliveMs - MARGIN_MS, KEEP_MOST_MS))
  }

  /**
   * An abort costs its connection. Where they are kept, another takes its place at once: an agent that was stopped asks again
   * soon, and need not wait for one. Where none has been kept, one that is opened and not used may hold up a small server.
   */
  aborted(connection: Connection): void {
    if (connection.usableUntil === 0) return
    // What the other side says of how long it keeps them is about those behind an answer.
    this.#open({ connected: (next) => this.#keep(next, KEEP_MS), failed: () => undefined })
  }

  closed(connection: Connection): void {
    this.#connections.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    this.#tellIfEmpty()
  }

  /** Ends all connections; whoever waits for something is told. */
  destroy(): void {
    const closing = new NetworkError('ECONNRESET', 'all connections are closed')
    for (const connection of this.#connections) connection.destroy()
    // Behind them: whoever is told may abort, which opens another.
    for (const giveUp of this.#opening) giveUp(closing)
    clearTimeout(this.#sweeper)
  }

  #keep(connection: Connection, lastsMs: number): void {
    connection.usableUntil = performance.now() + lastsMs
    this.#idle.push(connection)
    this.#sweeper ??= setTimeout(() => this.#sweep(), SWEEP_MS).unref()
  }

  #open(waiting: Waiting): void {
    const { connect, connectMs } = this.#parts
    const opened = (): void => {
      clearTimeout(timer)
      this.#opening.delete(giveUp)
    }
    const giveUp = connect({
      connected: (socket) => {
        opened()
        const connection = new Connection(socket, this)
        this.#connections.add(connection)
        waiting.connected(connection)
      },
      failed: (error) => {
        opened()
        this.#tellIfEmpty()
        waiting.failed(error)
      },
    })
    this.#opening.add(giveUp)
    const late = (): void => giveUp(new NetworkError('ETIMEDOUT', `no connection came about within ${connectMs} ms`))
    const timer = setTimeout(late, connectMs)
  }

  /** Closes what is too old to be used. */
  #sweep(): void {
    const now = performance.now()
    for (const connection of this.#idle.filter((idle) => !idle.isUsable(now))) connection.destroy()
    this.#sweeper = this.#idle.length > 0 ? setTimeout(() => this.#sweep(), SWEEP_MS).unref() : undefined
  }

  #tellIfEmpty(): void {
    if (this.#connections.size === 0 && this.#opening.size === 0) this.#parts.emptied()
  }
}
