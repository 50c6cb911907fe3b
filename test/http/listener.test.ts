import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { Writable } from 'node:stream'
import { connect as connectSecurely } from 'node:tls'
import fc from 'fast-check'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createIdSource } from '../../src/base/ids.ts'
import { createListener, type Front } from '../../src/http/listener.ts'
import { adjustableClock } from '../support/memory-api.ts'
import { createAuthority } from '../support/certificates.ts'

const log = pino(new Writable({ write: (_chunk, _encoding, done) => done() }))

test.each(['http', 'https'])('over %s an end does not wait for a connection that has sent nothing', async (scheme) => {
  const tls = scheme === 'https' ? await (await createAuthority()).issue('server', ['127.0.0.1']) : undefined
  const listener = createListener({
    log,
    ids: createIdSource(adjustableClock()),
    timeoutMs: 60_000,
    allowedOrigins: [],
    tls,
  })
  const port = Number(new URL(await listener.listen({ port: 0, host: '127.0.0.1' })).port)
  const accepted = once(listener.server, tls ? 'secureConnection' : 'connection')
  const socket = tls
    ? connectSecurely({ port, host: '127.0.0.1', rejectUnauthorized: false })
    : connect(port, '127.0.0.1')
  const closed = once(socket, 'close')
  await accepted
  await listener.close()
  await closed
  expect(socket.bytesRead).toBe(0)
})

test('requests that arrive too slowly are looked for every second', async () => {
  const ids = createIdSource(adjustableClock())
  const { server } = createListener({ log, ids, timeoutMs: 1000, allowedOrigins: [] })
  expect(server).toMatchObject({ headersTimeout: 10_000, connectionsCheckingInterval: 1000 })
})

test('a connection that was opened and never used is closed without a word', async () => {
  const ids = createIdSource(adjustableClock())
  const listener = createListener({ log, ids, timeoutMs: 1000, allowedOrigins: [] })
  listener.server.headersTimeout = 10
  const port = Number(new URL(await listener.listen({ port: 0, host: '127.0.0.1' })).port)
  onTestFinished(() => listener.close())
  expect(await text(connect(port, '127.0.0.1'))).toBe('')
})

test('a request of which the last came after its refusal is not served', async () => {
  const served: string[] = []
  const front: Front = {
    handles: (url) => served.push(url) > 0,
    handle: (_request, response) => void response.end(),
    arrivalMs: 60_000,
    unreadable: (message) => message,
  }
  const ids = createIdSource(adjustableClock())
  const listener = createListener({ log, ids, timeoutMs: 1000, allowedOrigins: [], front })
  const port = Number(new URL(await listener.listen({ port: 0, host: '127.0.0.1' })).port)
  onTestFinished(() => listener.close())
  const accepted = once(listener.server, 'connection')
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [peer]: Socket[] = await accepted
  socket.write('GET /fast HTTP/1.1\r\n')
  if (peer && peer.bytesRead === 0) await once(peer, 'data')
  listener.server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), peer)
  served.length = 0
  expect(String(await once(socket, 'data'))).toContain('did not arrive in time')
  socket.write('Host: a\r\n\r\n')
  await once(peer ?? socket, 'close')
  socket.destroy()
  expect(served).toEqual([])
})

/** A front for `/fast`, which begins an answer and goes on when it is told to; everything else is the framework's. */
async function withFront(timeoutMs: number): Promise<(sent: string) => ReturnType<typeof connect>> {
  const front: Front = {
    handles: (url) => url.startsWith('/fast'),
    handle: (_request, response) => void response.write('begun '),
    arrivalMs: 60_000,
    unreadable: (message, path) => JSON.stringify({ front: path, message }),
  }
  const unreadable = (): string => '{"framework":true}'
  const ids = createIdSource(adjustableClock())
  const listener = createListener({ log, ids, timeoutMs, allowedOrigins: [], front, unreadable })
  listener.post('/slow', async () => 'never')
  listener.get('/told', async ({ url }) => url)
  const port = Number(new URL(await listener.listen({ port: 0, host: '127.0.0.1' })).port)
  onTestFinished(async () => {
    listener.server.closeAllConnections()
    await listener.close()
  })
  return (sent) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(sent)
    return socket
  }
}

test('what cannot be read is told in the words of whom it was for', async () => {
  const open = await withFront(60_000)
  const said = async (sent: string): Promise<string> => (await text(open(sent))).split('\r\n\r\n')[1] ?? ''
  expect(await said('POST /fast?a=1 HTTP/1.1\r\nContent-Length: -1\r\n\r\n')).toContain('"front":"/fast"')
  expect(await said('POST /slow HTTP/1.1\r\nContent-Length: -1\r\n\r\n')).toBe('{"framework":true}')
  expect(await said('POST http://any/fast HTTP/1.1\r\nContent-Length: -1\r\n\r\n')).toContain('"front":"/fast"')
  expect(await said('get /fast HTTP/1.1\r\n\r\n')).toContain('"front":"/fast"')
  expect(await said('POST /slow HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')).toBe('{"framework":true}')
})

test('what cannot be read while an answer goes out ends the connection, and says nothing into the answer', async () => {
  const open = await withFront(60_000)
  const socket = open('POST /fast HTTP/1.1\r\nContent-Length: 0\r\n\r\n')
  const begun = String(await once(socket, 'data'))
  socket.write('NONSENSE\r\n\r\n')
  expect(begun + (await text(socket))).not.toContain('400 Bad Request')
})

test('a body for the framework that comes too slowly is refused, though one for the front may take longer', async () => {
  const open = await withFront(50)
  const begin = (path: string): string => `POST ${path} HTTP/1.1\r\nContent-Length: 9\r\n\r\n{`
  expect(await text(open(begin('/slow')))).toContain('{"framework":true}')
  expect(String(await once(open(begin('/fast')), 'data'))).toContain('begun')
})

test('a request that names the whole address is one to its path', async () => {
  const open = await withFront(60_000)
  const socket = open('GET http://127.0.0.1:7777/told?a=1 HTTP/1.1\r\nConnection: close\r\n\r\n')
  expect((await text(socket)).split('\r\n\r\n')[1]).toBe('/told?a=1')
  const front = open('GET http://127.0.0.1:7777/fast HTTP/1.1\r\nContent-Length: 0\r\n\r\n')
  expect(String(await once(front, 'data'))).toContain('begun')
})

test('an unknown expectation is no reason to refuse', async () => {
  const open = await withFront(60_000)
  const socket = open('POST /slow HTTP/1.1\r\nExpect: much\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200/)
})

test('the headers of a request are those that Node itself makes of it', async () => {
  const tell = ({ headers }: IncomingMessage, response: ServerResponse): void =>
    void response.end(JSON.stringify(Object.entries(headers)))
  const front: Front = { handles: () => true, handle: tell, arrivalMs: 60_000, unreadable: () => '' }
  const ids = createIdSource(adjustableClock())
  const listener = createListener({ log, ids, timeoutMs: 60_000, allowedOrigins: [], front })
  await listener.listen({ port: 0, host: '127.0.0.1' })
  const plain = createServer(tell).listen(0, '127.0.0.1')
  await once(plain, 'listening')
  onTestFinished(async () => {
    plain.close()
    await listener.close()
  })
  const told = async (server: { address(): AddressInfo | string | null }, sent: string): Promise<string> => {
    const address = server.address()
    const socket = connect(typeof address === 'object' ? (address?.port ?? 0) : 0, '127.0.0.1')
    socket.write(sent)
    return (await text(socket)).split('\r\n\r\n')[1] ?? ''
  }
  const known = [
    'Authorization',
    'Content-Type',
    'Cookie',
    'Set-Cookie',
    'Accept',
    'User-Agent',
    'Age',
    'x-forwarded-for',
  ]
  const own = ['x-mem-api-key', 'X-Mem-Credential', 'x-api-key', 'traceparent', 'constructor', 'hasOwnProperty', 'Odd!']
  const name = fc
    .tuple(fc.constantFrom(...known, ...own), fc.boolean())
    .map(([header, isLoud]) => (isLoud ? header.toUpperCase() : header))
  const lines = fc.array(fc.tuple(name, fc.string({ unit: 'grapheme-ascii', maxLength: 8 })), { maxLength: 12 })
  const property = fc.asyncProperty(lines, async (headers) => {
    const all = [['Host', 'here'], ...headers, ['Connection', 'close']].map(([header, value]) => `${header}: ${value}`)
    const sent = `GET /any HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n`
    const expected = await told(plain, sent)
    expect(expected).toContain('["host","here"]')
    expect(await told(listener.server, sent)).toBe(expected)
  })
  await fc.assert(property, { numRuns: 100, seed: 7 })
})
