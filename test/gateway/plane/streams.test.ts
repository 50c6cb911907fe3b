import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text as rest } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  CHAT,
  credentialAt,
  FRAMES,
  json,
  MESSAGE,
  refusal,
  SESSION,
  sse,
  startRig,
  startUpstream,
  STREAM,
  TOKEN,
  USER,
  type RigOptions,
  type Script,
} from './support.ts'

const REQUEST = { ...CHAT, stream: true }
/** More than the buffers of the system hold. */
const FRAMES_SENT = 700

async function rig(script: Script, options: RigOptions = {}) {
  const upstream = await startUpstream(script)
  return { upstream, ...(await startRig({ credentials: [credentialAt(1, upstream)], ...options })) }
}

/** What comes until it holds this. */
async function until(response: IncomingMessage, text: string): Promise<string> {
  let got = ''
  response.setEncoding('utf8')
  while (!got.includes(text)) got += String((await once(response, 'data'))[0])
  return got
}

test('a stream passes unchanged but for the usage chunk, with the headers of streams', async () => {
  const { call, record } = await rig(sse())
  const answer = await call('chat/completions', REQUEST)
  expect(answer.text).toBe(STREAM.filter((frame) => frame !== FRAMES.usage).join(''))
  expect(answer.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  expect(answer.headers).not.toHaveProperty('x-mem-cost')
  const kept = await record()
  expect(kept).toMatchObject({ stream: true, outcome: 'ok', input_tokens: 20, output_tokens: 5, finish_reason: 'stop' })
  expect(kept.first_token_ms).toBeGreaterThan(0)
  expect(kept.bytes_out).toBe(answer.text.length)
})

test('start frames are held until content comes, at most for commit_after', async () => {
  const held = await rig(sse([FRAMES.start], false))
  const opened = held.open('chat/completions', REQUEST)
  await held.upstream.next()
  let isAnswered = false
  void opened.then(() => (isAnswered = true))
  for (let i = 0; i < 20; i++) await turn()
  expect(isAnswered).toBe(false)
  // The start frame must have been read before the time counts from it.
  const response = await Promise.race([opened, advanceUntil(held.advance, opened)])
  expect(await until(response, '"role":"assistant"')).toBe(FRAMES.start)
})

/** Lets a little more than ten seconds pass in each turn until it has come. */
async function advanceUntil<T>(advance: (ms: number) => void, coming: Promise<T>): Promise<T> {
  let isHere = false
  void coming.then(() => (isHere = true))
  for (let i = 0; i < 5 && !isHere; i++) {
    advance(10_001)
    await Promise.race([coming, new Promise((resolve) => setTimeout(resolve, 60))])
  }
  return coming
}

test('gateway#39 a probe that streams lets others through from its first word on, not only behind its last', async () => {
  const { call, open, upstream, advance } = await rig(refusal(503), { settings: { maxAttempts: 1 } })
  for (let i = 0; i < 5; i++) await call('chat/completions', CHAT)
  expect(await call('chat/completions', CHAT)).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  advance(5000)
  upstream.script = sse([FRAMES.start, FRAMES.text('Hel')], false)
  await until(await open('chat/completions', REQUEST), 'Hel')
  upstream.script = json()
  expect(await call('chat/completions', CHAT)).toMatchObject({ status: 200 })
})

test('gateway#76 a silent stream is kept open by heartbeats, in either dialect', async () => {
  const openai = await rig(sse([FRAMES.start, FRAMES.text('Hel')], false))
  const response = await openai.open('chat/completions', REQUEST)
  await until(response, 'Hel')
  openai.advance(15_000)
  expect(await until(response, 'ping')).toBe(': ping\n\n')
  const events = [
    {
      type: 'message_start',
      message: {
        id: 'm1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        usage: { input_tokens: 9, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  const upstream = await startUpstream(sse(events, false))
  const credential = credentialAt(1, upstream, {
    kind: 'anthropic',
    config: { anthropic_version: '2023-06-01', default_max_tokens: 4096 },
    baseUrl: `http://127.0.0.1:${upstream.port}`,
    defaultModel: 'm',
  })
  const anthropic = await startRig({ credentials: [credential] })
  const message = await anthropic.open('messages', { ...MESSAGE, stream: true })
  await until(message, 'Hel')
  anthropic.advance(15_000)
  expect(await until(message, 'ping')).toMatch(/^event: ping\ndata: .*\n\n$/)
})

test('gateway#77 a slow reader pauses the provider, and memory stays bounded', async () => {
  const frame = FRAMES.text('x'.repeat(64 * 1024))
  const sent: number[] = []
  const script: Script = async (response) => {
    const stream = sent.push(0) - 1
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(FRAMES.start)
    for (let i = 1; i <= FRAMES_SENT && !response.destroyed; i++) {
      sent[stream] = i
      if (!response.write(frame)) await once(response, 'drain')
    }
    response.end(FRAMES.stop + FRAMES.done)
  }
  const { port, plane, record, call } = await rig(script)
  const body = JSON.stringify(REQUEST)
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /rest/v1/llm-gateway/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await once(socket, 'readable')
  // Nothing is read: what is on the way fills buffers of the system and the megabyte of ours, then the provider waits. A
  // stream of the same length, which is read, comes whole meanwhile.
  expect((await call('chat/completions', REQUEST)).text.length).toBeGreaterThan(FRAMES_SENT * frame.length)
  await record()
  expect(plane.activeRequests(1)).toBe(1)
  expect(sent[0]).toBeLessThan(FRAMES_SENT)
  let read = 0
  socket.on('data', (chunk: Buffer) => (read += chunk.length))
  expect(await record()).toMatchObject({ outcome: 'ok' })
  expect(sent).toEqual([FRAMES_SENT, FRAMES_SENT])
  while (read <= FRAMES_SENT * frame.length) await once(socket, 'data')
  expect(plane.activeRequests(1)).toBe(0)
  socket.destroy()
})

test('gateway#77 a reader that reads nothing any more is cut', async () => {
  const frame = FRAMES.text('x'.repeat(1024 * 1024))
  const { port, record, upstream } = await rig(sse([FRAMES.start, ...Array.from({ length: 24 }, () => frame)], false), {
    settings: { timeouts: { connect: 5000, first_byte: 60_000, idle: 1500, total: 600_000 } },
  })
  const body = JSON.stringify(REQUEST)
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /rest/v1/llm-gateway/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const seen = await upstream.next()
  expect(await record()).toMatchObject({ outcome: 'client_closed' })
  await seen.closed
  socket.destroy()
})

test('gateway#78 a stream without its end is told as cut, and its tokens are estimated', async () => {
  const { call, record } = await rig(sse([FRAMES.start, FRAMES.text('Hello'), FRAMES.text(' there')]))
  const answer = await call('chat/completions', REQUEST)
  const last = answer.text.trimEnd().split('\n\n').at(-1) ?? ''
  expect(JSON.parse(last.replace('data: ', ''))).toMatchObject({ error: { code: 'upstream_truncated' } })
  expect(await record()).toMatchObject({
    outcome: 'error',
    error_code: 'upstream_truncated',
    status: 200,
    output_tokens: 3,
    input_tokens: 2,
  })
})

test('gateway#78 a connection that breaks in the stream is told the same way', async () => {
  const { open, record } = await rig((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(FRAMES.start + FRAMES.text('Hello'), () => response.destroy())
  })
  const response = await open('chat/completions', REQUEST)
  expect(await until(response, 'upstream_truncated')).toContain('"error"')
  await record()
})

test('a provider that does not close behind its end does not keep the client', async () => {
  const { open, advance, record } = await rig(sse(STREAM, false))
  const response = await open('chat/completions', REQUEST)
  await until(response, '[DONE]')
  advance(1001)
  await once(response, 'end')
  expect(await record()).toMatchObject({ outcome: 'ok', output_tokens: 5 })
})

describe('a provider that says why it ends, and then nothing', () => {
  const FINISHED = [FRAMES.start, FRAMES.text('Hello there'), FRAMES.stop]

  test('ends well for the client: what it used is estimated, unless it was told', async () => {
    const { open, advance, record, upstream } = await rig(sse(FINISHED, false))
    const asked = { ...REQUEST, stream_options: { include_usage: true } }
    const estimated = await open('chat/completions', asked)
    await until(estimated, '"stop"')
    advance(5001)
    expect(await rest(estimated)).toMatch(/^data: .*"choices":\[\],"usage":.*"completion_tokens":3.*\n\n$/)
    expect(await record()).toMatchObject({ outcome: 'ok', finish_reason: 'stop', input_tokens: 2, output_tokens: 3 })
    upstream.script = sse([...FINISHED, FRAMES.usage], false)
    const told = await open('chat/completions', asked)
    await until(told, '"usage"')
    advance(5001)
    expect(await rest(told)).toBe('')
    expect(await record()).toMatchObject({ outcome: 'ok', input_tokens: 20, output_tokens: 5 })
  })

  test('is translated to its end', async () => {
    const { open, advance, record } = await rig(sse([FINISHED.join('')], false))
    const response = await open('messages', { ...MESSAGE, stream: true })
    await until(response, 'Hello there')
    advance(5001)
    expect(await rest(response)).toMatch(/"stop_reason":"end_turn"[^]*event: message_stop/)
    expect(await record()).toMatchObject({ outcome: 'ok', output_tokens: 3 })
  })

  test('may break the connection', async () => {
    const { call, record } = await rig((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(FINISHED.join(''), () => response.destroy())
    })
    expect((await call('chat/completions', REQUEST)).text).not.toContain('error')
    expect(await record()).toMatchObject({ outcome: 'ok', output_tokens: 3 })
  })

  test('has not said all while another choice is missing, nor with a reason that is none', async () => {
    let go = (): void => undefined
    const { open, advance, record, upstream } = await rig((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(FINISHED.join(''))
      go = () => response.end(FINISHED.join('').replaceAll('"index":0', '"index":1') + FRAMES.done)
    })
    const several = await open('chat/completions', { ...REQUEST, n: 2 })
    await until(several, '"stop"')
    advance(15_001)
    await until(several, ': ping')
    go()
    expect(await until(several, '[DONE]')).toContain('"index":1')
    expect(await record()).toMatchObject({ outcome: 'ok' })
    const empty = FINISHED.map((frame) => frame.replace(/"finish_reason":(?:null|"stop")/, '"finish_reason":""'))
    for (const path of ['chat/completions', 'messages']) {
      upstream.script = sse(empty)
      const cut = await open(path, { ...MESSAGE, stream: true })
      expect(await rest(cut)).toContain('upstream_truncated')
      expect(await record()).toMatchObject({ outcome: 'error', error_code: 'upstream_truncated' })
    }
  })
})

test('gateway#81 at the end of the process new calls are refused, running ones end or are told', async () => {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const waits: number[] = []
  const parts = {
    wait: (ms: number) => {
      waits.push(ms)
      return released
    },
  }
  const { open, call, port, upstream, plane, records } = await rig(sse([FRAMES.start, FRAMES.text('Hel')], false), {
    parts,
  })
  const response = await open('chat/completions', REQUEST)
  await until(response, 'Hel')
  upstream.script = () => undefined
  const silent = call('chat/completions', CHAT)
  await upstream.next()
  await upstream.next()
  const sending = connect(port, '127.0.0.1')
  sending.write(
    `POST /rest/v1/llm-gateway/v1/embeddings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 9\r\n\r\n{`,
  )
  await expect.poll(() => plane.activeRequests(1)).toBe(3)
  const closed = plane.close()
  expect(waits).toEqual([15_000])
  expect(await call('chat/completions', CHAT)).toMatchObject({
    status: 503,
    body: { error: { code: 'shutting_down' } },
  })
  release()
  expect(await until(response, 'shutting_down')).toContain('"error"')
  expect(await silent).toMatchObject({ status: 503, body: { error: { code: 'shutting_down' } } })
  await closed
  const told = records.map(({ outcome, error_code: code }) => `${outcome} ${code}`)
  expect(new Set(told)).toEqual(new Set(['client_closed undefined', 'error shutting_down']))
  expect(told).toHaveLength(3)
})

test('gateway#81 whose session is known only when the process ends is refused, and calls nobody', async () => {
  const find = async () => {
    await plane.close()
    return { user: { id: USER, organization_id: 1 } }
  }
  const { call, plane, upstream, records } = await rig(json(), { parts: { sessions: { ended: 0, find } } })
  expect(await call('chat/completions', CHAT, { token: SESSION })).toMatchObject({
    status: 503,
    body: { error: { code: 'shutting_down' } },
  })
  expect([upstream.seen, records]).toEqual([[], []])
})

test('gateway#81 a stream that ends in time ends well', async () => {
  let end = (): void => undefined
  const { open, plane } = await rig(
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(FRAMES.start + FRAMES.text('Hel'))
      end = () => response.end(FRAMES.stop + FRAMES.done)
    },
    { parts: { wait: () => new Promise(() => undefined) } },
  )
  const response = await open('chat/completions', REQUEST)
  await until(response, 'Hel')
  const closed = plane.close()
  end()
  expect(await until(response, '[DONE]')).not.toContain('error')
  await closed
})

test('gateway#82 every call leaves one record: answered, refused, cached, cancelled', async () => {
  const { call, open, records, finished, upstream } = await rig(json(), {
    key: { allowedModels: ['m', 'other'], limits: { requests_per_minute: 8 } },
    organization: { blocked_models: ['other'] },
  })
  await call('chat/completions', CHAT)
  await call('chat/completions', { ...CHAT, model: 'not-allowed' })
  await call('chat/completions', { ...CHAT, model: 'other' })
  await call('chat/completions', undefined, { method: 'POST', raw: '{' })
  await call('chat/completions', { model: 'm' })
  const cached = { headers: { 'x-mem-cache': 'on' } }
  const stored = await call('chat/completions', CHAT, cached)
  const hit = await call('chat/completions', CHAT, cached)
  expect([stored, hit].map(({ headers }) => headers['x-mem-cache'])).toEqual(['stored', 'hit'])
  upstream.script = refusal(422)
  await call('chat/completions', CHAT)
  upstream.script = () => undefined
  const seen = upstream.seen.length
  const controller = new AbortController()
  const gone = open('chat/completions', CHAT, { signal: controller.signal })
  gone.catch(() => undefined)
  await expect.poll(() => upstream.seen.length).toBe(seen + 1)
  controller.abort()
  await expect.poll(() => records.length).toBe(9)
  for (let i = 0; i < 5; i++)
    await call('chat/completions', { ...CHAT, model: 'm' }, { headers: { 'x-mem-cache': 'on' } })
  expect(records.map(({ outcome, status, error_code: code }) => [outcome, status, code])).toEqual([
    ['ok', 200, undefined],
    ['rejected', 403, 'model_not_allowed'],
    ['rejected', 403, 'model_blocked'],
    ['rejected', 400, 'invalid_json'],
    ['rejected', 400, 'missing_required_parameter'],
    ['ok', 200, undefined],
    ['cached', 200, undefined],
    ['error', 422, 'invalid_value'],
    ['client_closed', 499, undefined],
    ['cached', 200, undefined],
    ['cached', 200, undefined],
    ['cached', 200, undefined],
    ['rejected', 429, 'rate_limit_exceeded'],
    ['rejected', 429, 'rate_limit_exceeded'],
  ])
  expect(records[6]).toMatchObject({ cost_usd: '0', cost_state: 'exact', input_tokens: null })
  expect(new Set(records.map(({ id }) => id)).size).toBe(records.length)
  expect(finished.map(({ record }) => record)).toEqual(records)
  expect(finished.flatMap(({ cache }) => cache ?? [])).toEqual(['stored', 'hit', 'hit', 'hit', 'hit'])
})
