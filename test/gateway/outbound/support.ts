import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { onTestFinished } from 'vitest'
import { connector } from '../../../src/gateway/outbound/connect.ts'
import type { AnswerHandler, Dispatcher, Line, OutboundRequest } from '../../../src/gateway/outbound/dispatcher.ts'
import { Outbound } from '../../../src/gateway/outbound/outbound.ts'
import { wholeAnswer, type WholeAnswer } from '../../../src/gateway/outbound/whole-answer.ts'

export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
export const EMPTY = Buffer.alloc(0)

/** Listens until the test ends; gives its port. */
export async function listen(listener: Server, sockets: readonly Socket[]): Promise<number> {
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('a server without a port')
  return address.port
}

/** A server that does with each connection as it is told, and those connections. */
export async function server(serve: (socket: Socket, number: number) => void) {
  const sockets: Socket[] = []
  const listener = createServer((socket) => {
    socket.on('error', () => undefined)
    serve(socket, sockets.push(socket))
  })
  return { origin: `http://127.0.0.1:${await listen(listener, sockets)}`, sockets }
}

/** One that answers whatever it is sent; by the number of the connection. */
export const answering = (answer: (number: number) => string) =>
  server((socket, number) => socket.on('data', () => socket.write(answer(number), 'latin1')))

export interface WayOptions {
  connectMs?: number
  ca?: string
  /** Is told of each connection, behind its owner. */
  connected?: (socket: Socket) => void
}

export function outbound({ connectMs = 2000, ca = '', connected }: WayOptions = {}): Outbound {
  const made = new Outbound({
    connectMs,
    connector: ({ hostname: host, port, protocol }) => {
      const connect = connector({
        target: { host, port: Number(port), secure: protocol === 'https:' },
        addresses: async () => ['127.0.0.1'],
        secureContext: () => createSecureContext({ ca }),
      })
      return (waiting) =>
        connect({
          ...waiting,
          connected: (socket) => {
            waiting.connected(socket)
            connected?.(socket)
          },
        })
    },
  })
  onTestFinished(() => made.destroy())
  return made
}

export const post = (origin: string, fields: Partial<OutboundRequest> = {}): OutboundRequest => ({
  method: 'POST',
  origin,
  path: '/v1/chat',
  headers: ['content-type', 'application/json'],
  ...fields,
})

export const ask = (by: Dispatcher, request: OutboundRequest, body = EMPTY): Promise<WholeAnswer> =>
  wholeAnswer(by, request, { body, signal: AbortSignal.timeout(5000), maxBytes: 1_000_000 })

/** Keeps what it is told; `events` are told as they come. */
export class Listener implements AnswerHandler {
  readonly told: string[] = []
  line: Line | undefined
  takes = true
  #waiting: { event: string; resolve: () => void }[] = []

  async until(event: string): Promise<void> {
    if (!this.told.some((each) => each.startsWith(event))) {
      await new Promise<void>((resolve) => this.#waiting.push({ event, resolve }))
    }
  }

  #tell(event: string): void {
    this.told.push(event)
    for (const { event: awaited, resolve } of this.#waiting) if (event.startsWith(awaited)) resolve()
  }

  onConnect(line: Line): void {
    this.line = line
    this.#tell('connect')
  }

  onHeaders(status: number): void {
    this.#tell(`head ${status}`)
  }

  onData(chunk: Buffer): boolean {
    this.#tell(`data ${chunk.length}`)
    return this.takes
  }

  onComplete(): void {
    this.#tell('complete')
  }

  onError(error: Error): void {
    this.#tell(`error ${String(Reflect.get(error, 'code'))}`)
  }
}
