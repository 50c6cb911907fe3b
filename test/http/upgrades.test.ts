import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createIdSource } from '../../src/base/ids.ts'
import { createListener } from '../../src/http/listener.ts'
import { webSocketUpgrades } from '../../src/http/upgrades.ts'
import { adjustableClock } from '../support/memory-api.ts'

const log = pino(new Writable({ write: (_chunk, _encoding, done) => done() }))

/** Serves `/quick` at once, `/slow` once it is let go, and takes WebSockets; gives a connection to it. */
async function start(): Promise<{ open: () => Socket; asked: Promise<unknown>; letGo: () => void }> {
  const ids = createIdSource(adjustableClock())
  const listener = createListener({ log, ids, timeoutMs: 60_000, allowedOrigins: [] })
  const gate = new EventEmitter()
  listener.get('/quick', async ({ query }) => `quick ${JSON.stringify(query)}`)
  listener.post('/quick', async ({ body }) => `took ${String(body)}`)
  listener.get('/last', async (_request, reply) => reply.header('Connection', 'close').send('last'))
  listener.get('/slow', async () => {
    const free = once(gate, 'free')
    gate.emit('asked')
    await free
    return 'slow'
  })
  webSocketUpgrades(listener.server).on('upgrade', (_request, socket) => socket.end('HTTP/1.1 101 Taken\r\n\r\n'))
  const port = Number(new URL(await listener.listen({ port: 0, host: '127.0.0.1' })).port)
  onTestFinished(async () => {
    listener.server.closeAllConnections()
    await listener.close()
  })
  return { open: () => connect(port, '127.0.0.1'), asked: once(gate, 'asked'), letGo: () => void gate.emit('free') }
}

const OFFER = 'Connection: Upgrade\r\nUpgrade: h2c\r\n'
const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
const LAST = get('/quick?last', 'Connection: close\r\n')
const bodies = async (socket: Socket): Promise<string[]> =>
  (await text(socket)).split(/HTTP\/1\.1 200 OK[^]*?\r\n\r\n/).slice(1)

test.each([
  ['both offer', get('/slow', OFFER) + get('/quick?b', OFFER)],
  ['the second offers', get('/slow') + get('/quick?b', OFFER)],
  ['the first offers', get('/slow', OFFER) + get('/quick?b')],
])('two requests at once on a connection are answered in their order: %s', async (_name, requests) => {
  const { open, asked, letGo } = await start()
  const socket = open()
  socket.write(requests + LAST)
  await asked
  letGo()
  expect(await bodies(socket)).toEqual(['slow', 'quick {"b":""}', 'quick {"last":""}'])
})

test('many offers at once are answered, with their bodies', async () => {
  const { open } = await start()
  const socket = open()
  const body = 'x'.repeat(50_000)
  const post = `POST /quick HTTP/1.1\r\nHost: localhost\r\n${OFFER}Content-Length: ${body.length}\r\n\r\n${body}`
  socket.write(get('/quick?a', OFFER) + post + get('/quick?b') + get('/quick?c') + post + LAST)
  const took = `took ${body}`
  const quick = ['a', 'b', 'c', 'last'].map((name) => `quick {"${name}":""}`)
  expect(await bodies(socket)).toEqual([quick[0], took, quick[1], quick[2], took, quick[3]])
})

test('a WebSocket begins behind the answers before it', async () => {
  const { open, asked, letGo } = await start()
  const socket = open()
  socket.write(get('/slow') + get('/quick', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'))
  await asked
  letGo()
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\nslowHTTP\/1\.1 101 Taken/)
})

test('an offer behind the last answer of a connection, or on one that breaks, is dropped', async () => {
  const { open, asked, letGo } = await start()
  const breaking = open()
  breaking.write(get('/slow') + get('/quick?b', OFFER))
  await asked
  breaking.resetAndDestroy()
  await once(breaking, 'close')
  letGo()
  const closing = open()
  closing.write(get('/last') + get('/quick?b', OFFER))
  expect(await bodies(closing)).toEqual(['last'])
  const after = open()
  after.write(LAST)
  expect(await bodies(after)).toEqual(['quick {"last":""}'])
})
