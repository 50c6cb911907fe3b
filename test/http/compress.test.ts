import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { request } from 'node:http'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

let api: MemoryApi
let ws: string
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_ALLOWED_ORIGINS: 'https://a.example' } })
  ws = await api.workspace()
  await api.imprint(ws, 'lamp '.repeat(1000))
})
afterAll(() => api.stop())

/** As it travels: fetch would decode it. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const sent = request(api.url + path, { method, headers }).end()
  const [answer] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  return { headers: answer.headers, bytes: Buffer.concat(chunks) }
}

describe('what GET answers with in text is compressed', () => {
  test('as the client takes it, and decodes to the same', async () => {
    const path = `/v1/workspaces/${ws}/memories`
    const plain = await get(path)
    expect(plain.headers).not.toHaveProperty('content-encoding')
    const br = await get(path, { 'accept-encoding': 'gzip, deflate, br' })
    expect([br.headers['content-encoding'], br.headers['vary']]).toEqual(['br', 'Origin, Accept-Encoding'])
    expect(brotliDecompressSync(br.bytes)).toEqual(plain.bytes)
    expect(br.bytes.length).toBe(Number(br.headers['content-length']))
    expect(br.bytes.length).toBeLessThan(plain.bytes.length / 5)
    const gzipped = await get(path, { 'accept-encoding': 'br;q=0, GZIP;q=0.5' })
    expect(gzipped.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(gzipped.bytes)).toEqual(plain.bytes)
    expect((await get(path, { 'accept-encoding': 'br;q=0.0, zstd' })).bytes).toEqual(plain.bytes)
  })

  test('HEAD tells what GET would, without a body', async () => {
    const path = `/v1/workspaces/${ws}/memories`
    const headers = { 'accept-encoding': 'br' }
    const [whole, head] = [await get(path, headers), await get(path, headers, 'HEAD')]
    expect(head.bytes.length).toBe(0)
    for (const name of ['content-encoding', 'content-length', 'content-type', 'vary']) {
      expect([name, head.headers[name]]).toEqual([name, whole.headers[name]])
    }
  })

  test('but not a small answer, which never depends on the header', async () => {
    const { headers } = await get('/healthz', { 'accept-encoding': 'br' })
    expect([headers['content-encoding'], headers['vary']]).toEqual([undefined, 'Origin'])
  })

  test('nor an answer to a POST, nor a stream of events', async () => {
    const recalled = await fetch(`${api.url}/v1/workspaces/${ws}/recall`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'accept-encoding': 'br' },
      body: JSON.stringify({ query: 'lamp' }),
    })
    expect((await recalled.text()).length).toBeGreaterThan(2048)
    expect(recalled.headers.get('content-encoding')).toBe(null)
    const ending = new AbortController()
    const stream = await fetch(`${api.url}/ui/events/activity`, { signal: ending.signal })
    expect(stream.headers.get('content-encoding')).toBe(null)
    ending.abort()
  })
})

describe('a page does not tell by its length what is in it:', () => {
  const encodingOf = async (path: string, site?: string): Promise<string | undefined> =>
    (await get(path, { 'accept-encoding': 'br', ...(site !== undefined && { 'sec-fetch-site': site }) })).headers[
      'content-encoding'
    ]

  test('with a query it is compressed only for our own pages and for what the user typed', async () => {
    const path = `/ui/workspaces/${ws}`
    for (const site of ['same-origin', 'none', 'cross-site', undefined]) expect(await encodingOf(path, site)).toBe('br')
    for (const site of ['same-origin', 'none']) expect(await encodingOf(`${path}?q=lamp`, site)).toBe('br')
    for (const site of ['same-site', 'cross-site', undefined]) {
      expect([site, await encodingOf(`${path}?q=lamp`, site)]).toEqual([site, undefined])
    }
  })

  test('the token of forms is masked anew each time, and each mask is as good', async () => {
    const first = await get('/ui/workspaces')
    const cookie = /mem_csrf=[^;]+/.exec(String(first.headers['set-cookie']))?.[0] ?? ''
    const tokens = new Set<string>()
    for (let i = 0; i < 3; i++) {
      const { bytes } = await get('/ui/workspaces', { cookie })
      tokens.add(/name="csrf_token" value="([^"]+)"/.exec(bytes.toString())?.[1] ?? '')
    }
    expect(tokens.size).toBe(3)
    const plain = cookie.slice('mem_csrf='.length)
    const create = async (token: string): Promise<number> => {
      const body = new URLSearchParams({ name: 'x', csrf_token: token })
      const sent = { method: 'POST', body, headers: { cookie }, redirect: 'manual' } as const
      return (await fetch(`${api.url}/ui/api/workspaces/create`, sent)).status
    }
    for (const token of [...tokens, plain]) expect([token, await create(token)]).toEqual([token, 303])
    const [some = ''] = tokens
    const other = `${some.slice(0, -1)}${some.endsWith('A') ? 'B' : 'A'}`
    for (const token of [other, some.slice(2), `${some}${some}`, 'AAAA']) expect(await create(token)).toBe(403)
  })
})
