import type { Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connector } from '../../../src/gateway/outbound/connect.ts'
import { Outbound } from '../../../src/gateway/outbound/outbound.ts'
import { createAuthority } from '../../support/certificates.ts'
import { answering, ask, EMPTY, listen, Listener, OK, outbound, post, server } from './support.ts'

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
