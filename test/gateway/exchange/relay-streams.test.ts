import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../../src/gateway/exchange/exchange.ts'
import { GatewayError } from '../../../src/gateway/errors.ts'
import {
  candidateOf,
  chat,
  chunksIn,
  faultOf,
  makeExchange,
  messages,
  named,
  requestOf,
  sse,
  streamOf,
} from './support.ts'

const HEAD = { id: 'c1', object: 'chat.completion.chunk', created: 5, model: 'gpt-x' }
const chunk = (delta: object, finish: string | null = null): object => ({
  ...HEAD,
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
})
const USAGE = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13, prompt_tokens_details: { cached_tokens: 3 } }
const usageChunk = { ...HEAD, choices: [], usage: USAGE }
const BEFORE = sse(chunk({ role: 'assistant', content: '' }), chunk({ content: 'é "x"\n🌧' }), chunk({}, 'stop'))
const DONE = sse('[DONE]')

const asking = { stream: true, stream_options: { include_usage: true } }
const openai = candidateOf('openai')

const anthropicStream = named(
  {
    type: 'message_start',
    message: { id: 'm1', model: 'claude-x', usage: { input_tokens: 9, cache_read_input_tokens: 2 } },
  } as never,
  { type: 'ping' },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as never,
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'é 🌧' } } as never,
  { type: 'content_block_stop', index: 0 } as never,
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } } as never,
  { type: 'message_stop' },
)

const responsesStream = named(
  { type: 'response.created', response: { id: 'r1', model: 'gpt-x', status: 'in_progress', output: [] } } as never,
  { type: 'response.output_text.delta', delta: 'é 🌧' } as never,
  {
    type: 'response.completed',
    response: {
      model: 'gpt-x',
      status: 'completed',
      output: [{ type: 'message' }],
      usage: {
        input_tokens: 9,
        output_tokens: 4,
        input_tokens_details: { cached_tokens: 3 },
        output_tokens_details: { reasoning_tokens: 1 },
      },
    },
  } as never,
)

/** Feeds a stream cut in two everywhere, and byte by byte. */
function expectSame(make: () => Exchange, text: string, expected: string): void {
  const bytes = Buffer.from(text)
  const whole = make().stream()
  whole.read(bytes)
  whole.end()
  for (let cut = 0; cut <= bytes.length; cut++) {
    const stream = make().stream()
    const steps = [stream.read(bytes.subarray(0, cut)), stream.read(bytes.subarray(cut)), stream.end()]
    expect(Buffer.concat(steps.flatMap((step) => step.bytes)).toString()).toBe(expected)
    expect(steps.at(-1)?.state).toBe('stopped')
    expect({ ...stream.facts }).toEqual({ ...whole.facts })
  }
  expect(
    streamOf(
      make(),
      [...bytes].map((byte) => Buffer.from([byte])),
    ).text,
  ).toBe(expected)
}

describe('gateway#49 the bytes of a stream go through unchanged', () => {
  test('openai, each chunk as it came', () => {
    const exchange = chat(openai, asking)
    const stream = exchange.stream()
    const pieces = [BEFORE, sse(usageChunk), DONE].map((text) => Buffer.from(text))
    for (const piece of pieces) expect(stream.read(piece).bytes).toEqual([piece])
    expect(stream.facts).toMatchObject({
      usage: { input: 9, cacheRead: 3, output: 4 },
      finishReason: 'stop',
      responseModel: 'gpt-x',
      textBytes: Buffer.byteLength('é "x"\n🌧'),
    })
  })

  test('anthropic and responses', () => {
    const message = messages(candidateOf('anthropic'), { stream: true })
    const stream = message.stream()
    const states = [...anthropicStream.matchAll(/.+?\n\n/gs)].map(([event]) => stream.read(Buffer.from(event)).state)
    expect(states).toEqual(['started', 'started', 'started', 'content', 'content', 'finished', 'stopped'])
    expect(stream.facts).toMatchObject({
      usage: { input: 11, cacheRead: 2, output: 4 },
      finishReason: 'stop',
      responseModel: 'claude-x',
      textBytes: 7,
    })
    expect(streamOf(message, [anthropicStream]).text).toBe(anthropicStream)
    const response = makeExchange(requestOf('responses', { model: 'a', input: 'hi', stream: true }), openai)
    const answered = response.stream()
    expect(answered.read(Buffer.from(responsesStream))).toMatchObject({ state: 'stopped' })
    expect(answered.facts).toMatchObject({
      usage: { input: 9, cacheRead: 3, output: 4, reasoning: 1 },
      finishReason: 'stop',
      responseModel: 'gpt-x',
      textBytes: 7,
    })
  })
})

describe('gateway#75 a stream cut at every byte is the same stream', () => {
  const hidden = (end: string) => (BEFORE + sse(usageChunk) + DONE).replaceAll('\n', end)
  const shown = (end: string) => (BEFORE + DONE).replaceAll('\n', end)

  test.each(['\n', '\r\n', '\r'])('openai with %j, its usage chunk taken out', (end) => {
    expectSame(() => chat(openai, { stream: true }), hidden(end), shown(end))
  })

  test('with a byte-order mark, comments, data of many lines', () => {
    const first = sse(chunk({ content: 'x' })).replace(',"created"', ',\ndata: "created"')
    const text = `\uFEFF: hello\n\n${first}: ping\n\n${sse(chunk({}, 'stop'))}`
    expectSame(() => chat(openai, { stream: true }), `${text}${sse(usageChunk)}${DONE}`, `${text}${DONE}`)
  })

  test('anthropic; responses', () => {
    expectSame(() => messages(candidateOf('anthropic'), { stream: true }), anthropicStream, anthropicStream)
    const response = (): Exchange =>
      makeExchange(requestOf('responses', { model: 'a', input: 'hi', stream: true }), openai)
    expectSame(response, responsesStream, responsesStream)
  })

  test('an event of 10 MiB passes in pieces, before its end has come; above 16 MiB it is refused', () => {
    const text =
      sse(chunk({ role: 'assistant' }), chunk({ content: 'x'.repeat(10 * 1024 * 1024) }), chunk({}, 'stop')) + DONE
    const bytes = Buffer.from(text)
    const stream = chat(openai, { stream: true }).stream()
    const out: Buffer[] = []
    const passed: number[] = []
    const inside: boolean[] = []
    for (let at = 0; at < bytes.length; at += 65_536) {
      const step = stream.read(bytes.subarray(at, at + 65_536))
      out.push(...step.bytes)
      passed.push(step.bytes.length)
      inside.push(stream.heartbeat.length === 0)
    }
    expect(passed.slice(2).every((count) => count > 0)).toBe(true)
    expect(inside.slice(2, -1).every(Boolean)).toBe(true) // a heartbeat would stand inside the event
    out.push(...stream.end().bytes)
    expect(Buffer.concat(out).equals(bytes)).toBe(true)
    expect(stream.facts.textBytes).toBe(10 * 1024 * 1024)
    const endless = chat(openai, { stream: true }).stream()
    const piece = Buffer.alloc(4 * 1024 * 1024, 'x')
    expect(
      faultOf(() => {
        for (let i = 0; i < 5; i++) endless.read(piece)
      }),
    ).toMatchObject({ class: 'transient', error: { code: 'upstream_invalid_response' } })
  })

  test('facts are those of the text, however it is escaped', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.boolean(), fc.boolean(), (texts, isAscii, isWhole) => {
        const written = sse(...texts.map((content) => chunk({ content })), chunk({}, 'stop'))
        const text = isAscii
          ? written.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          : written
        const stream = chat(openai, { stream: true }).stream()
        if (isWhole) stream.read(Buffer.from(text))
        else for (const event of text.split(/(?<=\n\n)/)) stream.read(Buffer.from(event))
        expect(stream.facts.textBytes).toBe(texts.reduce((sum, each) => sum + Buffer.byteLength(each), 0))
      }),
    )
  })
})

test('frames that differ in one string are counted by it, others by all that they say', () => {
  const deltas = [
    { content: '', reasoning_content: 'hm' },
    { content: '', reasoning_content: 'hm' },
    { content: 'x', reasoning_content: 'hm' },
    { content: 'x', reasoning_content: 'hm' },
    { content: 'x' },
    { content: 'long \\ "one"' },
    { content: 'last' },
  ]
  const stream = chat(openai, { stream: true }).stream()
  for (const delta of deltas) stream.read(Buffer.from(sse(chunk(delta))))
  stream.read(Buffer.from(sse({ ...chunk({ content: 'x' }, 'length'), usage: USAGE }, '[DONE]')))
  expect(stream.facts).toMatchObject({
    textBytes: 2 + 2 + 3 + 3 + 1 + 12 + 4 + 1,
    finishReason: 'length',
    usage: { input: 9 },
  })
})

describe('gateway#50 the usage chunk', () => {
  const usages = (text: string) => chunksIn(text).filter(({ usage }) => usage)

  test('unasked: none, and the tokens are known all the same', () => {
    const exchange = chat(openai, { stream: true })
    expect(streamOf(exchange, [BEFORE, sse(usageChunk), DONE]).text).toBe(BEFORE + DONE)
    const stream = exchange.stream()
    stream.read(Buffer.from(BEFORE + sse(usageChunk) + DONE))
    expect(stream.facts.usage).toMatchObject({ input: 9, output: 4 })
  })

  test("asked: exactly one, the provider's or an estimate", () => {
    expect(usages(streamOf(chat(openai, asking), [BEFORE, sse(usageChunk), DONE]).text)).toEqual([usageChunk])
    const { text } = streamOf(chat(openai, asking), [BEFORE + DONE])
    expect(text.endsWith(DONE)).toBe(true)
    // 'hi' is one token; the eleven bytes said are three
    expect(usages(text)).toMatchObject([
      { ...HEAD, choices: [], usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 } },
    ])
    expect(usages(streamOf(chat(openai, asking), [BEFORE]).text)).toHaveLength(1)
  })

  test('asked of Groq: one chunk of what it tells elsewhere; Mistral tells it with its last choice', () => {
    const groq = sse(chunk({ content: 'x' }), { ...chunk({}, 'stop'), x_groq: { usage: USAGE } }) + DONE
    const { text } = streamOf(chat(candidateOf('groq'), asking), [groq])
    expect(usages(text)).toMatchObject([{ choices: [], usage: { prompt_tokens: 9, completion_tokens: 4 } }])
    const mistral = sse(chunk({ content: 'x' }), { ...chunk({}, 'stop'), usage: USAGE }) + DONE
    expect(streamOf(chat(candidateOf('mistral'), asking), [mistral]).text).toBe(mistral)
  })

  test('of two that the provider sends, one; null is none', () => {
    const twice = sse({ ...chunk({ content: 'x' }), usage: null }, chunk({}, 'stop'), usageChunk, usageChunk) + DONE
    expect(usages(streamOf(chat(openai, asking), [twice]).text)).toHaveLength(1)
  })
})

test('gateway#51 thinking chunks of Mistral become reasoning_content, model_length becomes length', () => {
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm é' }] }
  const written = sse(
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: [thinking] }),
    chunk({ content: [{ type: 'text', text: 'so' }] }),
    chunk({ content: '!' }, 'model_length'),
  )
  const exchange = chat(candidateOf('mistral'), { stream: true })
  const { text } = streamOf(exchange, [written + DONE])
  expect(chunksIn(text).map((each) => each['choices'])).toMatchObject([
    [{ delta: { role: 'assistant' } }],
    [{ delta: { content: '', reasoning_content: 'hm é' } }],
    [{ delta: { content: 'so' } }],
    [{ delta: { content: '!' }, finish_reason: 'length' }],
  ])
  const body = {
    ...HEAD,
    choices: [
      {
        message: { role: 'assistant', content: [thinking, { type: 'text', text: 'so' }] },
        finish_reason: 'model_length',
      },
    ],
  }
  const answer = exchange.answer(Buffer.from(JSON.stringify(body)))
  expect(JSON.parse(answer.body.toString())).toMatchObject({
    choices: [{ message: { content: 'so', reasoning_content: 'hm é' }, finish_reason: 'length' }],
  })
  expect(answer.facts.finishReason).toBe('length')
})

test('gateway#73 the filter frame of Azure is no content', () => {
  const filter = sse({ id: '', model: '', object: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] })
  const stream = chat(candidateOf('azure-openai'), { stream: true }).stream()
  const frames = [': comment\n\n', filter, sse(chunk({ role: 'assistant', content: '' })), sse(chunk({ content: 'x' }))]
  expect(frames.map((frame) => stream.read(Buffer.from(frame)).state)).toEqual([
    'waiting',
    'started',
    'started',
    'content',
  ])
  stream.read(Buffer.from(sse(chunk({}, 'content_filter'), '[DONE]')))
  expect(stream.facts).toMatchObject({ finishReason: 'content_filter', responseModel: 'gpt-x' })
})

test.each([
  ['tool call', { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] }],
  ['reasoning', { reasoning_content: 'hm' }],
  ['other reasoning', { reasoning: 'hm' }],
  ['refusal', { refusal: 'no' }],
])('a %s is content', (_, delta) => {
  const stream = chat(openai, { stream: true }).stream()
  expect(stream.read(Buffer.from(sse(chunk({ role: 'assistant', content: null })))).state).toBe('started')
  expect(stream.read(Buffer.from(sse(chunk(delta)))).state).toBe('content')
})

describe('gateway#78 a stream without its stop event is truncated', () => {
  test.each([
    ['openai', () => chat(openai, { stream: true }), sse(chunk({ role: 'assistant' }), chunk({ content: 'half of' }))],
    [
      'anthropic',
      () => messages(candidateOf('anthropic'), { stream: true }),
      anthropicStream.slice(0, anthropicStream.indexOf('event: message_delta')),
    ],
    [
      'responses',
      () => makeExchange(requestOf('responses', { model: 'a', input: 'x', stream: true }), openai),
      responsesStream.slice(0, responsesStream.indexOf('event: response.completed')),
    ],
  ])('%s', (_, make, text) => {
    const stream = make().stream()
    stream.read(Buffer.from(text))
    const fault = faultOf(() => stream.end())
    expect(fault).toMatchObject({ class: 'transient', error: { code: 'upstream_truncated', status: 502 } })
    expect(stream.facts.textBytes).toBe(7)
  })

  test('openai: of several choices each has its end', () => {
    const of = (index: number, delta: object, finish_reason: string | null = null): object => ({
      ...HEAD,
      choices: [{ index, delta, finish_reason }],
    })
    const said = sse(of(0, { content: 'a' }), of(1, { content: 'b' }), of(0, {}, 'stop'))
    const read = (text: string) => {
      const stream = chat(openai, { stream: true, n: 2 }).stream()
      stream.read(Buffer.from(text))
      return stream
    }
    expect(faultOf(() => read(said).end())).toMatchObject({ error: { code: 'upstream_truncated' } })
    expect(read(said + sse(of(1, {}, 'length'))).end().state).toBe('stopped')
    expect(read(said + DONE).end().state).toBe('stopped')
    const both = (more: object): string =>
      sse({
        ...HEAD,
        choices: [0, 1].map((index) => ({ index, delta: { content: 'a' }, finish_reason: 'stop' })),
        ...more,
      })
    expect(read(both({})).end().state).toBe('stopped')
    expect(read(sse(of(0, { content: 'a' }), of(1, {})) + both({})).end().state).toBe('stopped')
    expect(read(sse(of(0, { content: 'a' })) + both({ usage: null })).end().state).toBe('stopped')
  })

  test('anthropic: who has said why the message ends is at its end', () => {
    const stream = messages(candidateOf('anthropic'), { stream: true }).stream()
    const [before = ''] = anthropicStream.split('event: message_stop')
    expect(stream.read(Buffer.from(before)).state).toBe('finished')
    const last = stream.end()
    expect(last.state).toBe('stopped')
    expect(before + Buffer.concat(last.bytes).toString()).toBe(anthropicStream)
    expect(stream.facts).toMatchObject({ finishReason: 'stop', usage: { output: 4 } })
  })

  test('half an event stays here', () => {
    const stream = chat(openai, { stream: true }).stream()
    const last = sse(chunk({ content: 'x' })).trimEnd()
    expect(stream.read(Buffer.from(last)).bytes).toEqual([])
    const fault = faultOf(() => stream.end())
    expect(Buffer.concat(fault.before).toString()).toBe('')
  })
})

describe('an error event is a fault, told after what came before it', () => {
  test('openai', () => {
    const stream = chat(openai, { stream: true }).stream()
    const error = { error: { message: 'too many', type: 'server_error', code: 'rate_limit_exceeded' } }
    const before = sse(chunk({ content: 'x' }))
    const fault = faultOf(() => stream.read(Buffer.from(before + sse(error))))
    expect(fault).toMatchObject({ class: 'rate', error: { code: 'upstream_rate_limited', message: 'too many' } })
    expect(Buffer.concat(fault.before).toString()).toBe(before)
    const told = stream.fail(new GatewayError('upstream_timeout', 'late'), 'r1').toString()
    expect(told).toBe(
      'data: {"error":{"message":"late","type":"server_error","param":null,"code":"upstream_timeout"}}\n\n',
    )
  })

  test('anthropic', () => {
    const stream = messages(candidateOf('anthropic'), { stream: true }).stream()
    const overloaded = named({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } as never)
    expect(faultOf(() => stream.read(Buffer.from(overloaded)))).toMatchObject({ class: 'rate', message: 'Overloaded' })
    expect(stream.fail(new GatewayError('upstream_timeout', 'late'), 'r1').toString()).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"late","code":"upstream_timeout"},"request_id":"r1"}\n\n',
    )
  })

  test('responses', () => {
    const response = makeExchange(requestOf('responses', { model: 'a', input: 'hi', stream: true }), openai)
    const failed = {
      type: 'response.failed',
      response: {
        status: 'failed',
        error: { code: 'server_error', message: 'oh' },
        usage: { input_tokens: 7, output_tokens: 3 },
      },
    }
    expect(faultOf(() => response.stream().read(Buffer.from(named(failed as never))))).toMatchObject({
      class: 'transient',
      message: 'oh',
      facts: { usage: { input: 7, output: 3 } },
    })
  })
})
