import { createServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AddressRefusedError } from '../../../src/gateway/kinds/upstream.ts'
import type { Network } from '../../../src/gateway/kinds/network.ts'
import type { Dispatcher } from '../../../src/gateway/outbound/dispatcher.ts'
import { wholeAnswer } from '../../../src/gateway/outbound/whole-answer.ts'
import { createAuthority } from '../../support/certificates.ts'
import { answering, listening, network, type Listening } from './support.ts'

let provider: Listening
const open: { close(): void | Promise<void> }[] = []
beforeEach(async () => {
  provider = await answering((_, response) => void response.end('{}'))
  open.push(provider)
})
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close()
})

function made(...[parts]: Parameters<typeof network>): Network {
  const one = network(parts)
  open.push(one)
  return one
}

const get = async (dispatcher: Dispatcher, url: string): Promise<number> => {
  const { origin, pathname: path } = new URL(url)
  const options = { signal: AbortSignal.timeout(5000), maxBytes: 1000 }
  return (await wholeAnswer(dispatcher, { method: 'GET', origin, path, headers: [] }, options)).status
}

/** The URL if it is refused for its address, else what came of it. */
const refusedOr = async (by: Network, url: string): Promise<unknown> => {
  const outcome = await get(by.dispatcher(), url).catch((error: unknown) => error)
  return outcome instanceof AddressRefusedError ? url : outcome
}

describe('network', () => {
  test('gateway#19 private addresses are refused in every form, unless allowed', async () => {
    const strict = made({ allowedHosts: [] })
    const hosts = [
      '127.0.0.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '10.0.0.1',
      '[fd00::1]',
      '0.0.0.0',
    ]
    for (const host of hosts) {
      const url = `https://${host}:${provider.port}/`
      expect(await refusedOr(strict, url)).toBe(url)
    }
    expect(provider.received).toHaveLength(0)
    expect(await get(made({ allowedHosts: [`127.0.0.1:${provider.port}`] }).dispatcher(), provider.url)).toBe(200)
    expect(await get(made({ allowedHosts: ['127.0.0.0/8'] }).dispatcher(), provider.url)).toBe(200)
    const other = made({ allowedHosts: [`127.0.0.1:${provider.port + 1}`] })
    await expect(get(other.dispatcher(), provider.url)).rejects.toBeInstanceOf(AddressRefusedError)
  })

  test('gateway#19 what a name means is checked at each connection', async () => {
    let answers = ['127.0.0.1']
    const names: string[] = []
    const resolve = async (host: string): Promise<string[]> => (names.push(host), answers)
    const url = `http://models.example:${provider.port}/`
    const one = made({ allowedHosts: [`models.example:${provider.port}`], resolve })
    expect(await get(one.dispatcher(), url)).toBe(200)
    expect(names).toEqual(['models.example'])

    const strict = made({ allowedHosts: [], resolve })
    const secure = `https://models.example:${provider.port}/`
    for (answers of [['127.0.0.1'], ['::ffff:10.0.0.8'], ['64:ff9b::c0a8:1'], ['93.184.216.34', '192.168.0.1']]) {
      expect(await refusedOr(strict, secure)).toBe(secure)
    }
    expect(provider.received).toHaveLength(1)
  })

  test('gateway#19 a range admits what names mean; plain http needs a host that is allowed', async () => {
    const resolve = async (): Promise<string[]> => ['127.0.0.1']
    const ranged = made({ allowedHosts: ['127.0.0.0/8'], resolve })
    await expect(get(ranged.dispatcher(), `http://models.example:${provider.port}/`)).rejects.toThrow(
      AddressRefusedError,
    )
    const strict = made({ allowedHosts: [], resolve: async () => ['93.184.216.34'] })
    await expect(get(strict.dispatcher(), 'http://models.example/')).rejects.toThrow(AddressRefusedError)
  })

  test('gateway#20 metadata addresses are refused even if allowed', async () => {
    const hosts = [
      '169.254.169.254',
      '169.254.170.2',
      'metadata.google.internal',
      '100.100.100.200',
      'fe80::1',
      'fd00:ec2::254',
    ]
    const resolve = async (): Promise<string[]> => ['169.254.169.254']
    const one = made({ allowedHosts: [...hosts, '0.0.0.0/0', '::/0', 'sly.example'], resolve })
    const urls = [
      '169.254.169.254',
      '[::ffff:169.254.169.254]',
      '[64:ff9b::a9fe:a9fe]',
      'metadata.google.internal',
      'metadata.google.internal.',
    ]
    for (const host of [...urls, '100.100.100.200', '[fe80::1]', '[fd00:ec2::254]', 'sly.example', '2852039166']) {
      const url = `http://${host}/latest/`
      expect(await refusedOr(one, url)).toBe(url)
    }
  })

  test('gateway#20 a redirect is an answer, not a way', async () => {
    const target = provider
    const sly = await answering((_, response) => void response.writeHead(302, { location: `${target.url}/x` }).end())
    open.push(sly)
    expect(await get(made().dispatcher(), `${sly.url}/v1/chat/completions`)).toBe(302)
    expect(target.received).toHaveLength(0)
  })

  test('TLS is verified, with the roots of ca_file added; the environment cannot turn it off', async () => {
    const authority = await createAuthority()
    const server = createServer(
      await authority.issue('localhost', ['localhost']),
      (_, response) => void response.end('{}'),
    )
    const { port, close } = await listening(server)
    open.push({ close })
    const url = `https://localhost:${port}/`
    const parts = { allowedHosts: ['localhost', '127.0.0.1'], resolve: async () => ['127.0.0.1'] }
    expect(await get(made({ ...parts, ca: authority.ca }).dispatcher(), url)).toBe(200)
    await expect(get(made({ ...parts, ca: authority.ca }).dispatcher(), `https://127.0.0.1:${port}/`)).rejects.toThrow(
      /IP/,
    )
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    try {
      await expect(get(made(parts).dispatcher(), url)).rejects.toThrow(/certificate/)
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    }
  })

  test('a connection that is not made in time is given up', async () => {
    const silent = createTcpServer(() => undefined)
    silent.listen(0, '127.0.0.1')
    await new Promise((done) => silent.once('listening', done))
    const address = silent.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    try {
      const attempt = get(made().dispatcher(300), `https://127.0.0.1:${port}/`)
      await expect(attempt).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    } finally {
      silent.close()
    }
  })

  test('credentials of one connect timeout share their connections', async () => {
    const one = made()
    expect(one.dispatcher(2000)).toBe(one.dispatcher())
    expect(one.dispatcher(5000)).not.toBe(one.dispatcher())
    expect(one.dispatcher(1234)).toBe(one.dispatcher(1299))
    const all = new Set(Array.from({ length: 50_000 }, (_, i) => one.dispatcher(100 + i * 71)))
    expect(all.size).toBeLessThan(500)
  })
})
