import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/gateway/errors.ts'
import type { Exchange } from '../../../src/gateway/exchange/exchange.ts'
import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import {
  awsMessage,
  candidateOf,
  chat,
  chunksIn,
  eventsIn,
  faultOf,
  messages,
  named,
  sse,
  streamOf,
} from './support.ts'
import { STREAMS } from './stream-samples.ts'

const asking = { stream: true, stream_options: { include_usage: true } }
const stream = { stream: true }

const textOf = (deltas: readonly (Record<string, unknown> | undefined)[], name: string): string =>
  deltas.map((delta) => (typeof delta?.[name] === 'string' ? delta[name] : '')).join('')

interface Chunk {
  id: string
  created: number
  model: string
  choices: {
    delta: Record<string, unknown> & { tool_calls?: { function: { arguments: string } }[] }
    finish_reason: string | null
  }[]
  usage?: object
}

function expectChat(text: string, thought: string): void {
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  const chunks = chunksIn(text) as unknown as Chunk[]
  expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1)
  const deltas = chunks.map(({ choices }) => choices[0]?.delta)
  expect(deltas[0]).toEqual({ role: 'assistant', content: '' })
  expect(textOf(deltas, 'content')).toBe('wet 🌧')
  expect(textOf(deltas, 'reasoning_content')).toBe(thought)
  const calls = deltas.flatMap((delta) => delta?.tool_calls ?? [])
  expect(calls[0]).toMatchObject({ index: 0, id: 'c1', type: 'function', function: { name: 'rain' } })
  expect(calls.map((call) => call.function.arguments).join('')).toBe('{"at":1}')
  expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['tool_calls'])
  expect(chunks.flatMap(({ usage }) => usage ?? [])).toMatchObject([
    { prompt_tokens: 9, completion_tokens: 8, total_tokens: 17, prompt_tokens_details: { cached_tokens: 3 } },
  ])
}

function expectMessage(text: string): void {
  const events = eventsIn(text).map(
    ({ data }) => JSON.parse(data) as Record<string, Record<string, unknown>> & { type: string; index: number },
  )
  expect(events[0]).toMatchObject({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 0 } } })
  const starts = events.filter(({ type }) => type === 'content_block_start')
  expect(starts.map(({ index, content_block: block }) => [index, block?.['type']])).toEqual([
    [0, 'thinking'],
    [1, 'text'],
    [2, 'tool_use'],
  ])
  expect(starts[2]).toMatchObject({ content_block: { id: 'c1', name: 'rain' } })
  const deltas = events.filter(({ type }) => type === 'content_block_delta').map(({ delta }) => delta)
  expect(textOf(deltas, 'text')).toBe('wet 🌧')
  expect(textOf(deltas, 'thinking')).toBe('hm')
  expect(textOf(deltas, 'partial_json')).toBe('{"at":1}')
  expect(events.slice(-2)).toMatchObject([
    {
      type: 'message_delta',
      delta: { stop_reason: 'tool_use' },
      usage: { input_tokens: 6, cache_read_input_tokens: 3, output_tokens: 8 },
    },
    { type: 'message_stop' },
  ])
}

describe.each(['anthropic', 'gemini', 'converse'])(
  'gateway#54 gateway#67 gateway#68 %s to an openai client',
  (dialect) => {
    const { candidate, bytes } = STREAMS[dialect] ?? { candidate: candidateOf('openai'), bytes: Buffer.alloc(0) }

    test('text, thought, call, end, tokens', () => {
      const { text, steps } = streamOf(chat(candidate, asking), [bytes])
      expectChat(text, 'hm')
      expect(steps.at(-1)?.state).toBe('stopped')
      const answer = chat(candidate, asking).stream()
      answer.read(bytes)
      answer.end()
      expect(answer.facts).toMatchObject({
        usage: { input: 9, cacheRead: 3, output: 8 },
        finishReason: 'tool_calls',
        textBytes: 'hm'.length + Buffer.byteLength('wet 🌧') + '{"at":1}'.length,
      })
    })

    test('unasked, no usage chunk', () => {
      expect(streamOf(chat(candidate, stream), [bytes]).text).not.toContain('"usage"')
    })
  },
)

test.each(['openai', 'gemini', 'converse'])('gateway#54 gateway#67 gateway#68 %s to an anthropic client', (dialect) => {
  const { candidate, bytes } = STREAMS[dialect] ?? { candidate: candidateOf('openai'), bytes: Buffer.alloc(0) }
  expectMessage(streamOf(messages(candidate, stream), [bytes]).text)
})

describe.each(Object.keys(STREAMS))('gateway#75 gateway#71 %s cut at every byte is the same', (dialect) => {
  const { candidate, bytes } = STREAMS[dialect] ?? { candidate: candidateOf('openai'), bytes: Buffer.alloc(0) }
  const make = (): Exchange => (dialect === 'openai' ? messages(candidate, stream) : chat(candidate, asking))

  test('in two', () => {
    const whole = streamOf(make(), [bytes]).text
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(streamOf(make(), [bytes.subarray(0, cut), bytes.subarray(cut)]).text).toBe(whole)
    }
  })

  test('in any pieces, with any ends of line', () => {
    const whole = streamOf(make(), [bytes]).text
    const ends = dialect === 'converse' ? ['\n'] : ['\n', '\r\n', '\r']
    fc.assert(
      fc.property(fc.constantFrom(...ends), fc.array(fc.nat(bytes.length), { maxLength: 20 }), (end, cuts) => {
        const text = end === '\n' ? bytes : Buffer.from(bytes.toString().replaceAll('\n', end))
        const at = [0, ...cuts.sort((a, b) => a - b), text.length]
        const pieces = at.slice(1).map((to, i) => text.subarray(at[i], to))
        expect(streamOf(make(), pieces).text).toBe(whole)
      }),
    )
  })
})

test('gateway#75 an event of 10 MiB is translated', () => {
  const text = 'x'.repeat(10 * 1024 * 1024)
  const big = sse({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] })
  expect(streamOf(chat(candidateOf('gemini'), stream), [big]).text).toContain(text)
})

describe('gateway#69 what is malformed', () => {
  test.each<[string, Candidate, Buffer]>([
    ['gemini', candidateOf('gemini'), Buffer.from(sse({ candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] }))],
    [
      'converse',
      candidateOf('bedrock'),
      awsMessage({ ':event-type': 'messageStop' }, { stopReason: 'malformed_tool_use' }),
    ],
    ['no JSON', candidateOf('gemini'), Buffer.from(sse('{'))],
    ['a page', candidateOf('anthropic'), Buffer.from('data: <html>\n\n')],
    ['a damaged message', candidateOf('bedrock'), Buffer.alloc(64, 7)],
  ])('%s: transient before content, an error event after it', (_, candidate, bytes) => {
    expect(faultOf(() => chat(candidate, stream).stream().read(bytes))).toMatchObject({
      class: 'transient',
      error: { code: 'upstream_invalid_response', status: 502 },
    })
  })

  test('what came before it in the same bytes is not lost', () => {
    const answer = chat(candidateOf('gemini'), stream).stream()
    const said = sse({ candidates: [{ content: { parts: [{ text: 'half' }] } }] })
    const fault = faultOf(() => answer.read(Buffer.from(said + sse({ candidates: [{ finishReason: 'OTHER' }] }))))
    expect(Buffer.concat(fault.before).toString()).toContain('half')
    expect(answer.facts.textBytes).toBe(4)
    expect(answer.fail(fault.error, 'r').toString()).toMatch(
      /^data: {"error":{.*"code":"upstream_invalid_response"}}\n\n$/,
    )
  })

  test('whole answers: malformed calls, and answers that are none', () => {
    const gemini = chat(candidateOf('gemini'))
    const usageMetadata = { promptTokenCount: 9 }
    for (const body of ['{}', '', '[]', JSON.stringify({ candidates: [{ finishReason: 'OTHER' }], usageMetadata })]) {
      expect(faultOf(() => gemini.answer(Buffer.from(body)))).toMatchObject({ class: 'transient' })
    }
    const fault = faultOf(() =>
      gemini.answer(Buffer.from(JSON.stringify({ candidates: [{ finishReason: 'OTHER' }], usageMetadata }))),
    )
    expect(fault.facts?.usage).toMatchObject({ input: 9 })
  })

  test('a call whose arguments are no object, unless it was cut off', () => {
    const read = (args: string, finish_reason: string) => {
      const tool_calls = [{ id: 'c1', function: { name: 'f', arguments: args } }]
      const usage = { prompt_tokens: 9, completion_tokens: 4 }
      const answer = JSON.stringify({ choices: [{ message: { tool_calls }, finish_reason }], usage })
      return messages(candidateOf('openai')).answer(Buffer.from(answer))
    }
    for (const args of ['{"a":', '[1]', '"a"']) {
      expect(faultOf(() => read(args, 'tool_calls'))).toMatchObject({
        class: 'transient',
        error: { code: 'upstream_invalid_response' },
        facts: { usage: { input: 9, output: 4 } },
      })
    }
    expect(JSON.parse(read('{"a":', 'length').body.toString())).toMatchObject({
      content: [{ type: 'tool_use', input: {} }],
      stop_reason: 'max_tokens',
    })
  })
})

describe('errors inside a stream', () => {
  const overloaded = named({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } } as never)

  test.each<[string, Candidate, Buffer, string]>([
    ['anthropic', candidateOf('anthropic'), Buffer.from(overloaded), 'rate'],
    [
      'gemini',
      candidateOf('gemini'),
      Buffer.from(sse({ error: { code: 503, status: 'UNAVAILABLE', message: 'busy' } })),
      'transient',
    ],
    [
      'gemini, no more',
      candidateOf('gemini'),
      Buffer.from(sse({ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'busy' } })),
      'rate',
    ],
    [
      'gateway#71 throttling',
      candidateOf('bedrock'),
      awsMessage({ ':message-type': 'exception', ':exception-type': 'throttlingException' }, { message: 'busy' }),
      'rate',
    ],
    [
      'gateway#71 validation',
      candidateOf('bedrock'),
      awsMessage({ ':message-type': 'exception', ':exception-type': 'validationException' }, { message: 'busy' }),
      'client',
    ],
    [
      'gateway#71 others',
      candidateOf('bedrock'),
      awsMessage({ ':message-type': 'exception', ':exception-type': 'modelStreamErrorException' }, { message: 'busy' }),
      'transient',
    ],
    [
      'gateway#71 errors',
      candidateOf('bedrock'),
      awsMessage(
        { ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'x' },
        { message: 'busy' },
      ),
      'transient',
    ],
  ])('%s', (_, candidate, bytes, expected) => {
    expect(faultOf(() => chat(candidate, stream).stream().read(bytes))).toMatchObject({
      class: expected,
      message: 'busy',
    })
  })

  test.each([
    ['billing_error', 'auth'],
    ['request_too_large', 'client'],
  ])('%s is what its status says elsewhere', (type, expected) => {
    const bytes = Buffer.from(sse({ type: 'error', error: { type, message: 'm' } }))
    expect(faultOf(() => chat(candidateOf('anthropic'), stream).stream().read(bytes))).toMatchObject({
      class: expected,
    })
  })

  test('gateway#35 a prompt that Gemini blocks is filtered, whole and in a stream, and what it cost is known', () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 9 } }
    const gemini = candidateOf('gemini')
    const fault = faultOf(() => chat(gemini).answer(Buffer.from(JSON.stringify(blocked))))
    expect(fault).toMatchObject({
      class: 'filtered',
      error: { code: 'content_filter', status: 400 },
      facts: { usage: { input: 9 } },
    })
    expect(fault.message).toContain('SAFETY')
    expect(
      faultOf(() =>
        chat(gemini, stream)
          .stream()
          .read(Buffer.from(sse(blocked))),
      ),
    ).toMatchObject({ class: 'filtered' })
  })
})

describe('gateway#78 a stream without its stop event is truncated, what it said is counted', () => {
  test.each(Object.keys(STREAMS))('%s', (dialect) => {
    const { candidate, bytes } = STREAMS[dialect] ?? { candidate: candidateOf('openai'), bytes: Buffer.alloc(0) }
    const answer = (dialect === 'openai' ? messages(candidate, stream) : chat(candidate, stream)).stream()
    answer.read(bytes.subarray(0, Math.floor(bytes.length * 0.7)))
    expect(faultOf(() => answer.end())).toMatchObject({ class: 'transient', error: { code: 'upstream_truncated' } })
    expect(answer.facts.textBytes).toBeGreaterThan(0)
  })

  test('one that never began', () => {
    expect(faultOf(() => chat(candidateOf('gemini'), stream).stream().end())).toMatchObject({
      error: { code: 'upstream_truncated' },
    })
  })
})

test('gateway#36 a stream that ends before it said anything is an empty answer: another candidate may have one', () => {
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}}\n\n'
  const candidate = candidateOf('openai')
  for (const exchange of [chat(candidate, stream), messages(candidate, stream)]) {
    for (const text of ['', usage]) {
      const fault = faultOf(() => exchange.stream().read(Buffer.from(`${text}data: [DONE]\n\n`)))
      expect(fault).toMatchObject({ class: 'transient', error: { code: 'upstream_invalid_response' } })
    }
  }
})

test('gateway#36 states: waiting through pings, started, content from the first thing said', () => {
  const states = (candidate: Candidate, pieces: readonly (string | Buffer)[]) =>
    streamOf(chat(candidate, stream), pieces).steps.map(({ state }) => state)
  const parts = [...(STREAMS['anthropic']?.bytes.toString() ?? '').matchAll(/.+?\n\n/gs)].map(([event]) => event)
  expect(states(candidateOf('anthropic'), [named({ type: 'ping' }), ': hello\n\n', ...parts]).slice(0, 6)).toEqual([
    'waiting',
    'waiting',
    'started',
    'started',
    'content',
    'content',
  ])
})

test('heartbeats and errors are those of the client, not of the provider', () => {
  const [anthropic, openai] = [
    messages(candidateOf('gemini'), stream).stream(),
    chat(candidateOf('anthropic'), stream).stream(),
  ]
  expect(anthropic.heartbeat.toString()).toBe('event: ping\ndata: {"type":"ping"}\n\n')
  expect(openai.heartbeat.toString()).toBe(': ping\n\n')
  const error = new GatewayError('upstream_truncated', 'cut')
  expect(anthropic.fail(error, 'r1').toString()).toContain('event: error\n')
  expect(openai.fail(error, 'r1').toString()).toContain('"type":"server_error"')
})
