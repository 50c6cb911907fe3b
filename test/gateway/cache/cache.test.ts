import { beforeEach, describe, expect, test } from 'vitest'
import { createCache } from '../../../src/gateway/cache/cache.ts'
import { GatewayError } from '../../../src/gateway/errors.ts'
import type { InferenceRequest } from '../../../src/gateway/exchange/exchange.ts'
import type { Surface } from '../../../src/gateway/model.ts'
import type { AnswerCache, CacheResult } from '../../../src/gateway/plane/parts.ts'
import { readMembers } from '../../../src/gateway/relay/body.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { organizationState } from '../observe/samples.ts'
import { Reader, Upstream } from './two-sides.ts'

interface Asked {
  body?: object
  surface?: Surface
  user?: number
  organization?: number
  scope?: 'caller' | 'organization'
  pin?: string
  beta?: string
  mode?: 'on' | 'refresh'
  ttlMs?: number
  cap?: number
  isTracked?: boolean
  leftMs?: () => number
}

interface Call {
  readonly client: Reader
  readonly result: ReturnType<AnswerCache['serve']>
}

const clock = adjustableClock()
let cache: AnswerCache
let upstreams: Upstream[]

beforeEach(() => {
  cache = createCache(1024 * 1024, clock)
  upstreams = []
})

function ask({
  body = {},
  surface = 'chat',
  user = 1,
  organization = 1,
  scope = 'caller',
  isTracked = true,
  ...more
}: Asked = {}): Call {
  const json = { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body }
  const bytes = Buffer.from(JSON.stringify(json))
  const request: InferenceRequest = {
    surface,
    body: bytes,
    members: readMembers(bytes, new Set()),
    model: 'm',
    stream: 'stream' in json && json.stream === true,
    strict: false,
    organizationId: organization,
    maxOutputTokens: more.cap,
    json: () => json,
  }
  const state = organizationState(organization)
  const settings = { ...state.settings, cache_scope: scope, cost_tracking: isTracked }
  const client = new Reader()
  const result = cache.serve({
    request,
    caller: { state: { ...state, settings }, userId: user, key: undefined },
    pin: more.pin,
    forwarded: [more.beta ?? ''],
    wish: { mode: more.mode ?? 'on', ttlMs: more.ttlMs ?? 300_000 },
    leftMs: more.leftMs ?? (() => 60_000),
    overheadMs: () => 0.251,
    sink: client,
    run: (sink) => {
      const upstream = new Upstream(sink, request)
      upstreams.push(upstream)
      return upstream.result
    },
  })
  return { client, result }
}

/** Asks, and answers the call where one is made. */
async function answered(
  asked: Asked = {},
  text = 'hello',
  options: Parameters<Upstream['answer']>[1] = {},
): Promise<[CacheResult | GatewayError, Reader]> {
  const before = upstreams.length
  const { client, result } = ask(asked)
  if (upstreams.length > before) upstreams.at(-1)?.answer(text, options)
  return [await result, client]
}

describe('what is kept', () => {
  test('gateway#97 the second call is a hit with its age, byte for byte, and tells of no credential', async () => {
    const [stored, first] = await answered()
    expect([stored, first.headers['x-mem-cache']]).toEqual(['stored', 'stored'])
    clock.advance(42_500)
    const [hit, second] = await answered()
    expect(hit).toBe('hit')
    expect(second.text).toBe(first.text)
    expect(second.headers).toEqual({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(first.text)),
      'x-mem-cost': '0',
      'x-mem-dropped': 'seed',
      'x-mem-attempts': '0',
      'x-mem-overhead-ms': '0.25',
      'x-mem-cache': 'hit',
      age: '42',
    })
    expect((await answered({ isTracked: false }))[1].headers).not.toHaveProperty('x-mem-cost')
    expect(upstreams).toHaveLength(1)
  })

  test('gateway#97 until its time is over, and refresh replaces it', async () => {
    await answered({ ttlMs: 10_000 }, 'one')
    clock.advance(9000)
    expect((await answered())[0]).toBe('hit')
    const [refreshed, client] = await answered({ mode: 'refresh', ttlMs: 10_000 }, 'two')
    expect([refreshed, client.text.includes('two')]).toEqual(['stored', true])
    expect((await answered())[1].text).toContain('two')
    clock.advance(10_000)
    expect((await answered({}, 'three'))[0]).toBe('stored')
    clock.advance(-3_600_000)
    expect((await answered({}, 'four'))[0]).toBe('stored')
  })

  test('gateway#97 JSON serves a stream, a stream serves JSON; usage is told when asked for', async () => {
    await answered()
    const [fromJson, stream] = await answered({ body: { stream: true, stream_options: { include_usage: true } } })
    expect(fromJson).toBe('hit')
    expect(stream.headers).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8', 'x-mem-cache': 'hit' })
    expect(stream.text).toContain('"content":"hello"')
    expect(stream.text.split('"prompt_tokens":3')).toHaveLength(2)
    expect(stream.text.endsWith('data: [DONE]\n\n')).toBe(true)

    const body = { temperature: 0.5 }
    const [stored, live] = await answered({ body: { ...body, stream: true } })
    expect([stored, live.headers['x-mem-cache'], live.headers['x-mem-credential']]).toEqual([
      'stored',
      'miss',
      'secret name',
    ])
    const [fromStream, json] = await answered({ body })
    expect(fromStream).toBe('hit')
    expect(JSON.parse(json.text)).toMatchObject({
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 4 },
    })
  })

  test('gateway#97 another user misses; one organization shares when its settings say so; another never', async () => {
    await answered({ user: 1 })
    expect((await answered({ user: 2 }))[0]).toBe('stored')
    await answered({ user: 1, scope: 'organization' })
    expect((await answered({ user: 2, scope: 'organization' }))[0]).toBe('hit')
    expect((await answered({ user: 2, scope: 'organization', organization: 2 }))[0]).toBe('stored')
  })

  test('gateway#97 the order of fields and who the end user is make no other call; pin, headers for the provider, cap, surface and content do', async () => {
    await answered({ body: { temperature: 1, seed: 3 } })
    expect((await answered({ body: { seed: 3, temperature: 1, user: 'u', metadata: { a: 'b' } } }))[0]).toBe('hit')
    for (const other of [
      { pin: '7' },
      { beta: 'long-context' },
      { cap: 5 },
      { surface: 'messages' as const },
      { body: { seed: 4, temperature: 1 } },
    ]) {
      expect((await answered({ body: { temperature: 1, seed: 3 }, ...other }))[0]).not.toBe('hit')
    }
  })

  test('gateway#97 only whole answers of 1 MiB that end by themselves are kept; embeddings are', async () => {
    expect((await answered({}, 'cut', { finishReason: 'length' }))[0]).toBe('miss')
    expect((await answered({}, 'filtered', { finishReason: 'content_filter' }))[0]).toBe('miss')
    const [big, { text, headers }] = await answered({}, 'x'.repeat(1024 * 1024))
    expect([big, headers['x-mem-cache'], text.length > 1024 * 1024]).toEqual(['miss', 'miss', true])
    const failing = ask()
    upstreams.at(-1)?.fail()
    expect([await failing.result, failing.client.status, failing.client.headers['x-mem-cache']]).toEqual([
      'miss',
      502,
      'miss',
    ])
    expect((await answered({}, 'calls', { finishReason: 'tool_calls' }))[0]).toBe('stored')
    expect((await answered({ surface: 'embeddings' }))[0]).toBe('stored')
    expect((await answered({ surface: 'embeddings' }))[0]).toBe('hit')
  })

  test.each([false, true])('gateway#97 of several choices every one ends by itself, streamed: %s', async (stream) => {
    const body = { n: 2, stream }
    for (const finish of ['length', null, '']) {
      expect((await answered({ body }, 'cut', { finishes: [finish] }))[0]).toBe('miss')
    }
    expect((await answered({ body }, 'whole', { finishes: ['tool_calls'] }))[0]).toBe('stored')
  })

  test('gateway#97 numbers that JavaScript cannot tell apart share no answer', async () => {
    const bodies = [{ seed: Number.MAX_SAFE_INTEGER + 1 }, { tools: [{ least: -(2 ** 60) }] }]
    for (const body of [...bodies, ...bodies]) expect((await answered({ body }))[0]).toBe('miss')
    expect(upstreams).toHaveLength(4)
    expect((await answered({ body: { seed: Number.MAX_SAFE_INTEGER } }))[0]).toBe('stored')
  })

  test('those least recently used make room; without room nothing is kept', async () => {
    cache = createCache(3000, clock)
    const text = 'x'.repeat(500)
    for (const seed of [1, 2]) await answered({ body: { seed } }, text)
    expect((await answered({ body: { seed: 1 } }))[0]).toBe('hit')
    await answered({ body: { seed: 3 } }, text)
    expect((await answered({ body: { seed: 1 } }))[0]).toBe('hit')
    expect((await answered({ body: { seed: 2 } }, text))[0]).toBe('stored')
    cache = createCache(0, clock)
    expect((await answered())[0]).toBe('miss')
  })
})

describe('calls under way', () => {
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  test('gateway#98 ten equal calls make one upstream call, streams and JSON mixed', async () => {
    const calls = Array.from({ length: 10 }, (_, i) => ask({ body: { stream: i % 2 === 1 } }))
    await settled()
    expect(upstreams).toHaveLength(1)
    upstreams[0]?.answer('shared')
    expect(await Promise.all(calls.map(({ result }) => result))).toEqual(['stored', ...Array(9).fill('hit')])
    for (const { client } of calls) {
      expect([client.status, client.isEnded, client.text.includes('shared')]).toEqual([200, true, true])
    }
    expect(calls[1]?.client.headers['age']).toBe('0')
  })

  test('gateway#98 the owner leaves, nine are answered; when the last one leaves, the call ends', async () => {
    const calls = Array.from({ length: 10 }, () => ask())
    await settled()
    calls[0]?.client.leave()
    calls[4]?.client.leave()
    await settled()
    expect(upstreams[0]?.isAborted).toBe(false)
    upstreams[0]?.answer('shared')
    await Promise.all(calls.map(({ result }) => result))
    expect(calls.filter(({ client }) => client.text.includes('shared'))).toHaveLength(8)
    expect((await answered())[0]).toBe('hit')

    const alone = ask({ body: { seed: 1 } })
    const follower = ask({ body: { seed: 1 } })
    await settled()
    alone.client.leave()
    expect(upstreams.at(-1)?.isAborted).toBe(false)
    const leaving = upstreams.at(-1)
    follower.client.leave()
    await follower.result
    expect(leaving?.isAborted).toBe(true)
  })

  test('gateway#98 an owner nobody waits for takes the call along, and the next call makes its own', async () => {
    const { client, result } = ask()
    client.leave()
    expect([await result, upstreams[0]?.isAborted]).toEqual(['miss', true])
    expect((await answered())[0]).toBe('stored')
  })

  test('gateway#98 when the provider fails the shared call, it has failed for all who wait; nobody calls again', async () => {
    const calls = [ask(), ask(), ask({ body: { stream: true } })]
    await settled()
    const error = new GatewayError('upstream_error', 'no')
    upstreams[0]?.fail(error)
    expect(await Promise.all(calls.map(({ result }) => result))).toEqual(['miss', error, error])
    expect([upstreams.length, calls[1]?.client.status]).toEqual([1, 0])
    expect((await answered())[0]).toBe('stored')
  })

  test('gateway#98 when the shared call ends for reasons of its owner, one of the others makes the next for all', async () => {
    const calls = Array.from({ length: 4 }, () => ask())
    await settled()
    upstreams[0]?.fail()
    await calls[0]?.result
    await settled()
    expect(upstreams).toHaveLength(2)
    upstreams[1]?.answer('again')
    expect(await Promise.all(calls.map(({ result }) => result))).toEqual(['miss', 'stored', 'hit', 'hit'])
  })

  test('gateway#44 gateway#98 who waits for the call of another waits no longer than it may', async () => {
    const [one, two] = [ask(), ask({ leftMs: () => 1 })]
    expect(await two.result).toMatchObject({ code: 'upstream_timeout', status: 504 })
    upstreams[0]?.answer('late')
    expect(await one.result).toBe('stored')
  })

  test('gateway#44 gateway#98 who waits for one call after the other waits no longer than it may for all', async () => {
    let leftMs = 60_000
    const [first, second, third] = [ask(), ask(), ask({ leftMs: () => leftMs })]
    await settled()
    leftMs = 1
    upstreams[0]?.fail()
    expect(await third.result).toMatchObject({ code: 'upstream_timeout', status: 504 })
    upstreams[1]?.answer('late')
    expect([await first.result, await second.result]).toEqual(['miss', 'stored'])
  })

  test('gateway#98 what cannot be kept is shared all the same', async () => {
    for (const [text, finishReason] of [
      ['cut', 'length'],
      ['x'.repeat(1024 * 1024), 'stop'],
    ] as const) {
      const calls = [ask(), ask()]
      await settled()
      upstreams.at(-1)?.answer(text, { finishReason })
      expect(await Promise.all(calls.map(({ result }) => result))).toEqual(['miss', 'hit'])
    }
    expect(upstreams).toHaveLength(2)
  })

  test('refresh does not wait for a call under way', async () => {
    const [one, two] = [ask(), ask({ mode: 'refresh' })]
    await settled()
    expect(upstreams).toHaveLength(2)
    for (const upstream of upstreams) upstream.answer('x')
    expect([await one.result, await two.result]).toEqual(['stored', 'stored'])
  })

  test('a messages stream that would lose something goes through and is not kept', async () => {
    const asked = { surface: 'messages', body: { stream: true } } as const
    for (const [lost, result] of [
      [{ type: 'ping' }, 'stored'],
      [{ type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta', content: 'x' } }, 'miss'],
    ] as const) {
      const { client, result: served } = ask({ ...asked, mode: 'refresh' })
      const events = [{ type: 'message_start', message: {} }, { type: 'content_block_start', index: 0 }, lost]
      const stream = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
      upstreams.at(-1)?.sink.write(Buffer.from(stream))
      upstreams.at(-1)?.finish('stop', 0)
      expect([await served, client.text]).toEqual([result, stream])
    }
  })

  test('a stream that is none goes through untouched and is not kept', async () => {
    const { client, result } = ask({ body: { stream: true } })
    const sink = upstreams[0]?.sink
    sink?.head(200, ['content-type', 'text/event-stream'])
    sink?.write(Buffer.from('data: {"broken\n\n'))
    expect(client.text).toBe('data: {"broken\n\n')
    client.leave()
    expect(await result).toBe('miss')
  })
})
