import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connector } from '../../../src/gateway/outbound/connect.ts'
import type { AnswerHandler, Dispatcher, Line, OutboundRequest } from '../../../src/gateway/outbound/dispatcher.ts'
import { Outbound } from '../../../src/gateway/outbound/outbound.ts'
import { wholeAnswer, type WholeAnswer } from '../../../src/gateway/outbound/whole-answer.ts'
import { createAuthority } from '../../support/certificates.ts'

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const EMPTY = Buffer.alloc(0)

/** Listens until the test ends; gives its port. */
async function listen(listener: Server, sockets: readonly Socket[]): Promise<number> {
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
async function server(serve: (socket: Socket, number: number) => void) {
  const sockets: Socket[] = []
  const listener = createServer((socket) => {
    socket.on('error', () => undefined)
    serve(socket, sockets.push(socket))
  })
  return { origin: `http://127.0.0.1:${await listen(listener, sockets)}`, sockets }
}

/** One that answers whatever it is sent; by the number of the connection. */
const answering = (answer: (number: number) => string) =>
  server((socket, number) => socket.on('data', () => socket.write(answer(number), 'latin1')))

interface WayOptions {
  connectMs?: number
  ca?: string
  /** Is told of each connection, behind its owner. */
  connected?: (socket: Socket) => void
}

function outbound({ connectMs = 2000, ca = '', connected }: WayOptions = {}): Outbound {
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

const post = (origin: string, fields: Partial<OutboundRequest> = {}): OutboundRequest => ({
  method: 'POST',
  origin,
  path: '/v1/chat',
  headers: ['content-type', 'application/json'],
  ...fields,
})

const ask = (by: Dispatcher, request: OutboundRequest, body = EMPTY): Promise<WholeAnswer> =>
  wholeAnswer(by, request, { body, signal: AbortSignal.timeout(5000), maxBytes: 1_000_000 })

/** Keeps what it is told; `events` are told as they come. */
class Listener implements AnswerHandler {
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

test('a request on the wire', async () => {
  const received: string[] = []
  const { origin } = await server((socket) =>
    socket.on('data', (bytes) => {
      received.push(bytes.toString('latin1'))
      socket.write(OK)
    }),
  )
  const way = outbound()
  const host = new URL(origin).host
  await ask(way, post(origin, { headers: ['x-name', 'Grüße'] }), Buffer.from('{"a":"ü"}'))
  await ask(way, post(origin))
  await ask(way, post(origin, { method: 'GET', path: '/v1/models?a=b' }))
  const always = `host: ${host}\r\nconnection: keep-alive\r\n`
  expect(received).toEqual([
    `POST /v1/chat HTTP/1.1\r\n${always}x-name: Grüße\r\ncontent-length: 10\r\n\r\n${Buffer.from('{"a":"ü"}').toString('latin1')}`,
    `POST /v1/chat HTTP/1.1\r\n${always}content-type: application/json\r\ncontent-length: 0\r\n\r\n`,
    `GET /v1/models?a=b HTTP/1.1\r\n${always}content-type: application/json\r\n\r\n`,
  ])
})

test('what would end a line of a request is refused before anything goes out', async () => {
  const { origin, sockets } = await answering(() => OK)
  const way = outbound()
  const bad: Partial<OutboundRequest>[] = [
    { path: '/a b' },
    { path: '/a\r\nx: y' },
    { path: 'no-slash' },
    { headers: ['x-name', 'a\r\ncontent-length: 0'] },
    { headers: ['x-name', 'a\0'] },
    { headers: ['x-name', '€'] },
  ]
  for (const fields of bad) expect(() => way.dispatch(post(origin, fields), EMPTY, new Listener())).toThrow(TypeError)
  expect(sockets).toHaveLength(0)
})

test('a body of 20 MB goes out whole', async () => {
  const body = Buffer.alloc(20_000_000, 'x')
  const { origin } = await server((socket) => {
    let left = body.length
    socket.on('data', (bytes) => {
      const end = bytes.indexOf('\r\n\r\n')
      left -= bytes.length - (left === body.length ? end + 4 : 0)
      if (left === 0) socket.write(OK)
    })
  })
  expect((await ask(outbound(), post(origin), body)).status).toBe(200)
})

test('a connection serves one request after the other; requests at once have one each', async () => {
  const { origin, sockets } = await answering((number) => `HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${number}`)
  const way = outbound()
  const bodies = async (count: number): Promise<string[]> => {
    const answers = await Promise.all(Array.from({ length: count }, () => ask(way, post(origin))))
    return answers.map(({ body }) => body.toString()).toSorted()
  }
  for (let i = 0; i < 3; i++) expect(await bodies(1)).toEqual(['1'])
  expect(await bodies(3)).toEqual(['1', '2', '3'])
  expect(await bodies(3)).toEqual(['1', '2', '3'])
  expect(sockets).toHaveLength(3)
})

test.each([
  ['that says so', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'],
  [
    'that is kept for no longer than a request takes',
    'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nok',
  ],
  ['with bytes behind its answer', `${OK}HTTP/1.1 200 OK\r\n`],
])('a connection %s serves no other request', async (_name, answer) => {
  const { origin, sockets } = await answering(() => answer)
  const way = outbound()
  for (let i = 0; i < 3; i++) expect((await ask(way, post(origin))).body.toString()).toBe('ok')
  expect(sockets).toHaveLength(3)
})

test('an answer that comes before its request is out ends its connection', async () => {
  const { origin, sockets } = await server((socket) => {
    socket.pause()
    socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n')
  })
  const way = outbound()
  for (let i = 0; i < 2; i++) expect((await ask(way, post(origin), Buffer.alloc(30_000_000))).status).toBe(413)
  expect(sockets).toHaveLength(2)
})

test('an idle connection that says something, ends or grows old is closed', async () => {
  const { origin, sockets } = await answering((number) =>
    number === 3 ? OK.replace('content-length', 'keep-alive: timeout=1\r\ncontent-length') : OK,
  )
  const way = outbound()
  const closed = async (number: number, how: (socket: Socket) => void): Promise<void> => {
    await ask(way, post(origin))
    const socket = sockets[number - 1]
    if (!socket) throw new Error('another connection served the request')
    const end = once(socket, 'close')
    how(socket)
    await end
  }
  await closed(1, (socket) => socket.write('HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n'))
  await closed(2, (socket) => socket.end())
  await closed(3, () => undefined)
  expect((await ask(way, post(origin))).status).toBe(200)
  expect(sockets).toHaveLength(4)
})

test('an idle connection that has just been closed is not taken for another request', async () => {
  const { origin, sockets } = await answering(() => OK)
  const opened: Socket[] = []
  const way = outbound({ connected: (socket) => opened.push(socket) })
  await ask(way, post(origin))
  // Its end is told in a later turn of the event loop.
  opened[0]?.destroy()
  expect((await ask(way, post(origin))).status).toBe(200)
  expect(sockets).toHaveLength(2)
})

test('nothing is told behind an abort, and its connection is closed', async () => {
  const { origin, sockets } = await answering(() => 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin')
  const way = outbound()
  const listener = new Listener()
  way.dispatch(post(origin), EMPTY, listener)
  await listener.until('data')
  const [socket] = sockets
  const end = socket && once(socket, 'close')
  listener.line?.abort(listener)
  await end
  expect(listener.told).toEqual(['connect', 'head 200', 'data 5'])
})

test('an abort of a request that is over leaves the connection to the next', async () => {
  const { origin, sockets } = await answering(() => OK)
  const way = outbound()
  const [first, second] = [new Listener(), new Listener()]
  way.dispatch(post(origin), EMPTY, first)
  await first.until('complete')
  way.dispatch(post(origin), EMPTY, second)
  first.line?.abort(first)
  await second.until('complete')
  expect(sockets).toHaveLength(1)
})

describe('in place of a connection that is aborted', () => {
  const BEGIN = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin'

  async function begin(way: Outbound, origin: string): Promise<Listener> {
    const listener = new Listener()
    way.dispatch(post(origin), EMPTY, listener)
    await listener.until('data')
    return listener
  }
  const abort = (listener: Listener): void => listener.line?.abort(listener)

  test('another is opened, and serves the next request', async () => {
    let answer = OK
    const { origin, sockets } = await answering(() => answer)
    let opened = (): void => undefined
    const way = outbound({ connected: () => opened() })
    await ask(way, post(origin))
    answer = BEGIN
    const listener = await begin(way, origin)
    answer = OK
    const another = new Promise<void>((resolve) => (opened = resolve))
    abort(listener)
    await another
    expect((await ask(way, post(origin))).status).toBe(200)
    expect(sockets).toHaveLength(2)
  })

  test('none is opened where none has been kept', async () => {
    const { origin, sockets } = await answering((number) => (number === 1 ? BEGIN : OK))
    const way = outbound()
    abort(await begin(way, origin))
    // One more would have been opened before that of this request.
    expect((await ask(way, post(origin))).status).toBe(200)
    expect(sockets).toHaveLength(2)
  })

  test('none is opened while all are closed', async () => {
    let answer = OK
    const { origin } = await answering(() => answer)
    let opened = 0
    const way = outbound({ connected: () => opened++ })
    await Promise.all([ask(way, post(origin)), ask(way, post(origin))])
    answer = BEGIN
    const [first, second] = [await begin(way, origin), await begin(way, origin)]
    first.onError = () => abort(second)
    second.onError = () => abort(first)
    way.destroy()
    await ask(outbound(), post((await answering(() => OK)).origin))
    expect(opened).toBe(2)
  })
})

test('a request that is given up while it connects is not sent', async () => {
  const { origin, sockets } = await answering(() => OK)
  const way = outbound()
  const abort = new AbortController()
  const answer = wholeAnswer(way, post(origin), { signal: abort.signal, maxBytes: 10 })
  abort.abort(new Error('given up'))
  await expect(answer).rejects.toThrow('given up')
  expect((await ask(way, post(origin))).status).toBe(200)
  expect(sockets.filter(({ bytesRead }) => bytesRead > 0)).toHaveLength(1)
})

test('a client that does not read holds the provider back', async () => {
  const body = Buffer.alloc(50_000_000)
  const { origin, sockets } = await server((socket) =>
    socket.once('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`)
      socket.write(body)
    }),
  )
  const way = outbound()
  const slow = new Listener()
  slow.takes = false
  way.dispatch(post(origin), EMPTY, slow)
  await slow.until('data')
  await new Promise((resolve) => setImmediate(resolve))
  expect(sockets[0]?.writableLength).toBeGreaterThan(0)
  expect(slow.told).not.toContain('complete')
  slow.takes = true
  slow.line?.resume(slow)
  await slow.until('complete')
})

test.each([
  ['before its answer', '', ['connect', 'error ECONNRESET']],
  ['in the head of its answer', 'HTTP/1.1 200 OK\r\n', ['connect', 'error ECONNRESET']],
  [
    'in the body of its answer',
    'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegin',
    ['connect', 'head 200', 'data 5', 'error ECONNRESET'],
  ],
  [
    'between chunks',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n',
    ['connect', 'head 200', 'data 5', 'error ECONNRESET'],
  ],
  [
    'where that is the end of its answer',
    'HTTP/1.1 200 OK\r\n\r\nwhole',
    ['connect', 'head 200', 'data 5', 'complete'],
  ],
  ['behind what is no answer', 'SSH-2.0\r\n\r\n', ['connect', 'error EPROTO']],
])('a connection that ends %s', async (_name, answer, told) => {
  const { origin } = await server((socket) => socket.once('data', () => socket.end(answer)))
  const listener = new Listener()
  outbound().dispatch(post(origin), EMPTY, listener)
  await listener.until(told.at(-1) ?? '')
  expect(listener.told).toEqual(told)
})

describe('what a host means', () => {
  /** A way to `host` that connects to where `addresses` says. */
  function wayTo(host: string, addresses: () => Promise<string[]>, connectMs = 2000): Outbound {
    const way = new Outbound({
      connectMs,
      connector: ({ port }) =>
        connector({
          target: { host, port: Number(port), secure: false },
          addresses,
          secureContext: createSecureContext,
        }),
    })
    onTestFinished(() => way.destroy())
    return way
  }

  test.each([
    ['a name is looked up once for connections that open together, and again for later ones', 'models.example', 2],
    ['an address in figures stays what it is', '127.0.0.1', 1],
  ])('%s', async (_name, host, looksLater) => {
    const { origin, sockets } = await answering(() => OK)
    let looks = 0
    const way = wayTo(host, async () => (looks++, ['127.0.0.1']))
    await Promise.all([1, 2].map(() => ask(way, post(origin))))
    expect([looks, sockets.length]).toEqual([1, 2])
    await Promise.all([1, 2, 3].map(() => ask(way, post(origin))))
    expect([looks, sockets.length]).toEqual([looksLater, 3])
  })

  test('a name that is told too late is connected to no more', async () => {
    const { origin, sockets } = await answering(() => OK)
    let tell: (addresses: string[]) => void = () => undefined
    const told = new Promise<string[]>((resolve) => (tell = resolve))
    const way = wayTo('models.example', () => told, 50)
    await expect(ask(way, post(origin))).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    tell(['127.0.0.1'])
    expect((await ask(way, post(origin))).status).toBe(200)
    expect(sockets).toHaveLength(1)
  })
})

test('nobody listens, or says that the connection stands', async () => {
  const silent = await server(() => undefined)
  const listener = new Listener()
  outbound().dispatch(post('http://127.0.0.1:1'), EMPTY, listener)
  await listener.until('error')
  expect(listener.told).toEqual(['error ECONNREFUSED'])
  const late = ask(outbound({ connectMs: 100 }), post(silent.origin.replace('http:', 'https:')))
  await expect(late).rejects.toMatchObject({ code: 'ETIMEDOUT' })
})

test('whoever waits when the way is closed is told', async () => {
  const { origin } = await server(() => undefined)
  const way = outbound()
  const [waiting, connecting, late] = [new Listener(), new Listener(), new Listener()]
  way.dispatch(post(origin), EMPTY, waiting)
  await waiting.until('connect')
  way.dispatch(post(origin.replace('http:', 'https:')), EMPTY, connecting)
  way.destroy()
  way.dispatch(post(origin), EMPTY, late)
  await connecting.until('error')
  expect([waiting, connecting, late].map(({ told }) => told.at(-1))).toEqual(Array(3).fill('error ECONNRESET'))
})

test('a TLS session is taken up again', async () => {
  const authority = await createAuthority()
  const reused: boolean[] = []
  const sockets: Socket[] = []
  const listener = createTlsServer(await authority.issue('localhost', ['localhost']), (socket) => {
    reused.push(socket.isSessionReused())
    sockets.push(socket)
    socket.on('data', () => socket.write(OK))
  })
  const origin = `https://localhost:${await listen(listener, sockets)}`
  const way = outbound({ ca: authority.ca })
  await ask(way, post(origin))
  await Promise.all([ask(way, post(origin)), ask(way, post(origin))])
  expect(reused).toEqual([false, true])
})
