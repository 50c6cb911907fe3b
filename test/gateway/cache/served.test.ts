import { createServer, type Server } from 'node:http'
import { writeFileSync } from 'node:fs'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createPlace,
  expectOk,
  initialize,
  startPlatform,
  type Place,
  type PlatformApi,
} from '../../platform/support.ts'
import { startFakeModel, type FakeModel } from '../../support/fake-model/index.ts'

const G = '/rest/v1/llm-gateway'
const MARKER = 'PROMPT-MARKER-5d1e'

interface Said {
  status: number
  headers: Headers
  text: string
}

describe('a gateway over a fake provider', () => {
  let place: Place
  let api: PlatformApi
  let fake: FakeModel
  let collector: Server
  const traces: string[] = []
  let before = 0

  beforeAll(async () => {
    collector = createServer((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => traces.push(text))
      request.on('end', () => response.end('{}'))
    }).listen(0, '127.0.0.1')
    await once(collector, 'listening')
    const { port } = collector.address() as AddressInfo
    place = await createPlace('sqlite')
    const file = join(place.directory, 'mem.yaml')
    const operator = join(place.directory, 'operator')
    writeFileSync(operator, 'the-operator\n')
    writeFileSync(
      file,
      `gateway: {allowed_hosts: ["127.0.0.1"], metrics_token_file: ${operator}}\ntelemetry: {otlp_endpoint: "http://127.0.0.1:${port}"}\n`,
    )
    await initialize(place)
    api = await startPlatform(place, { MEM_CONFIG: file })
    fake = await startFakeModel({ provider: 'openai-compatible' })
    expectOk(await api.call('POST', `/${G}/credentials`, { name: 'main', ...fake.credential }), 201)
  })
  beforeEach(() => void (before = fake.received.length))
  afterAll(async () => {
    await api.stop()
    await fake.close()
    collector.closeAllConnections()
    collector.close()
    await place.remove()
  })

  const post = (
    prompt: string,
    body: object,
    headers: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<Response> =>
    fetch(`${api.url}${G}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${api.admin}`,
        'content-type': 'application/json',
        'x-mem-cache': 'on',
        ...headers,
      },
      body: JSON.stringify({ model: 'local-model', messages: [{ role: 'user', content: prompt }], ...body }),
      ...(signal && { signal }),
    })
  const chat = async (prompt: string, body: object = {}, headers: Record<string, string> = {}): Promise<Said> => {
    const response = await post(prompt, body, headers)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const scrape = async (token: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` }
    return (await fetch(`${api.url}/metrics/ai-gateway`, { headers })).text()
  }
  const calls = (): number => fake.received.length - before

  test('gateway#97 off by default; a hit, its age, a refresh, JSON as a stream, another user', async () => {
    for (let i = 0; i < 2; i++)
      expect((await chat('one', {}, { 'x-mem-cache': 'off' })).headers.get('x-mem-cache')).toBeNull()
    expect(calls()).toBe(2)
    const stored = await chat('one')
    expect([stored.status, stored.headers.get('x-mem-cache')]).toEqual([200, 'stored'])
    api.advance(7000)
    const hit = await chat('one')
    expect([hit.text, hit.headers.get('x-mem-cache'), hit.headers.get('age')]).toEqual([stored.text, 'hit', '7'])
    expect(hit.headers.get('x-request-id')).not.toBe(stored.headers.get('x-request-id'))
    const stream = await chat('one', { stream: true })
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(stream.text).toMatch(/^data: \{[^]*"finish_reason":"stop"[^]*data: \[DONE\]\n\n$/)
    expect((await chat('one', {}, { 'x-mem-cache': 'refresh' })).headers.get('x-mem-cache')).toBe('stored')
    expect(calls()).toBe(4)
    const { token } = await api.user('bo@example.org')
    expect((await chat('one', {}, { authorization: `Bearer ${token}` })).headers.get('x-mem-cache')).toBe('stored')
    expect(calls()).toBe(5)
    const live = await chat('two', { stream: true })
    expect([live.status, live.headers.get('x-mem-cache')]).toEqual([200, 'miss'])
    const whole = await chat('two')
    expect(whole.headers.get('x-mem-cache')).toBe('hit')
    expect(JSON.parse(whole.text)).toMatchObject({ object: 'chat.completion', choices: [{ finish_reason: 'stop' }] })
  })

  test('gateway#97 a bad key gets no hit, and a hit is recorded at no cost', async () => {
    await chat('three')
    const refused = await chat('three', {}, { authorization: `Bearer mvk_${'x'.repeat(43)}` })
    expect(refused.status).toBe(401)
    const { headers } = await chat('three')
    const id = headers.get('x-request-id')
    await expect
      .poll(async () => (await api.call('GET', `/${G}/usage?request_id=${id}`)).body.usage[0])
      .toMatchObject({ outcome: 'cached', cost_usd: '0', attempts: [] })
  })

  test('gateway#98 ten equal calls make one upstream call; the owner leaves, nine are answered', async () => {
    fake.setScript({ firstByteMs: 1500 })
    const leaving = new AbortController()
    const owner = post('four', {}, {}, leaving.signal).catch((error: unknown) => error)
    await fake.waitFor((call) => call.number > before)
    const others = Array.from({ length: 9 }, (_, i) => chat('four', { stream: i % 2 === 0 }))
    await expect.poll(() => scrape('the-operator')).toContain('active_requests{organization="1"} 10')
    leaving.abort()
    expect(await owner).toBeInstanceOf(Error)
    const answers = await Promise.all(others)
    fake.setScript([])
    expect(answers.map(({ status, headers }) => [status, headers.get('x-mem-cache')])).toEqual(
      Array.from({ length: 9 }, () => [200, 'hit']),
    )
    expect(calls()).toBe(1)
  })

  test('gateway#99 gateway#102 gateway#103 metrics and traces tell of calls, and of no prompt', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await chat(MARKER, {}, { traceparent })
    await chat(MARKER, { stream: true }, { 'x-mem-cache': 'off' })
    await chat(MARKER, { model: 'gpt-invented-by-me' }, { 'x-mem-credential': 'nobody' })
    const { token } = expectOk(await api.call('POST', `/${G}/metrics-token`, {}), 201)
    const own = await scrape(token)
    expect(own).toMatch(
      /llm_gateway_requests_total\{organization="1",surface="chat",provider="openai-compatible",model="other",credential="1",outcome="ok"\} \d+/,
    )
    expect(own).toMatch(/llm_gateway_cache_total\{organization="1",result="hit"\} \d+/)
    expect(own).toMatch(/llm_gateway_credential_state\{organization="1",credential="1",state="[a-z]+"\} 1/)
    const all = await scrape('the-operator')
    expect(all).toMatch(/llm_gateway_metering_queue \d+/)
    expect(await scrape(api.admin)).toContain('unauthorized')
    await expect.poll(() => traces.join('')).toContain('0af7651916cd43dd8448eb211c80319c')
    const told = own + all + traces.join('')
    expect(told).not.toContain(MARKER)
    expect(told).not.toContain('invented')
  })
})
