import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { OutboundRequest } from '../../../src/gateway/outbound/dispatcher.ts'
import type { Outbound } from '../../../src/gateway/outbound/outbound.ts'
import { wholeAnswer } from '../../../src/gateway/outbound/whole-answer.ts'
import { answering, ask, EMPTY, Listener, OK, outbound, post, server } from './support.ts'

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
