import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AnthropicReader } from '../../../src/gateway/chat/anthropic/read-answer.ts'
import {
  AnthropicStreamWriter,
  anthropicUsageOf,
  writeAnthropicAnswer,
} from '../../../src/gateway/chat/anthropic/write-answer.ts'
import { ConverseReader } from '../../../src/gateway/chat/converse/read-answer.ts'
import { AnswerError, NO_USAGE, type ChatEvent, type Said } from '../../../src/gateway/chat/events.ts'
import { GeminiReader } from '../../../src/gateway/chat/gemini/read-answer.ts'
import { OpenAiReader } from '../../../src/gateway/chat/openai/read-answer.ts'
import { OpenAiStreamWriter, writeOpenAiAnswer } from '../../../src/gateway/chat/openai/write-answer.ts'
import { writeJson } from '../../../src/gateway/chat/raw-json.ts'
import { EventReader } from '../../../src/gateway/relay/sse.ts'

const HEAD = { id: 'a1', created: 1_700_000_000, model: 'm' }
const callId = (index: number): string => `call_${index}`

/** Text, a thought, two calls, as every dialect but Gemini's can say them. */
const EVENTS: Said[] = [
  { kind: 'start', id: 'a1', model: 'm' },
  { kind: 'reasoning', family: 'claude', text: 'hm ' },
  { kind: 'reasoning', family: 'claude', text: 'so' },
  { kind: 'signature', signature: 'sig' },
  { kind: 'text', text: 'It is ' },
  { kind: 'text', text: 'wet 🌧' },
  { kind: 'call', index: 0, id: 'c0', name: 'rain' },
  { kind: 'arguments', index: 0, text: '{"where":' },
  { kind: 'arguments', index: 0, text: '"here"}' },
  { kind: 'call', index: 1, id: 'c1', name: 'wind' },
  { kind: 'usage', usage: { ...NO_USAGE, input: 20, cacheRead: 5, output: 9 } },
  { kind: 'stop', reason: 'tool_calls' },
]

/** Events in pieces of any size are the same answer. */
const whole = (events: readonly Said[]): unknown => JSON.parse(writeJson(writeAnthropicAnswer(HEAD, events)))
const saidOf = (events: readonly ChatEvent[]): Said[] =>
  events.flatMap((event) => (event.kind === 'error' ? [] : event))

function readOpenAi(bytes: Buffer, cut: number): Said[] {
  const [events, reader] = [new EventReader(), new OpenAiReader(callId)]
  return [bytes.subarray(0, cut), bytes.subarray(cut)]
    .flatMap((piece) => events.read(piece))
    .flatMap(({ data }) => saidOf(reader.read(data)))
}

function readAnthropic(bytes: Buffer, cut: number): Said[] {
  const [events, reader] = [new EventReader(), new AnthropicReader()]
  return [bytes.subarray(0, cut), bytes.subarray(cut)]
    .flatMap((piece) => events.read(piece))
    .flatMap(({ data }) => saidOf(reader.read(data)))
}

describe('streams that were written are read back, cut at every byte', () => {
  test('gateway#75 anthropic', () => {
    const writer = new AnthropicStreamWriter(HEAD, { ...NO_USAGE, input: 20 })
    const bytes = Buffer.from(EVENTS.map((event) => writer.write(event)).join('') + writer.end(NO_USAGE))
    for (let cut = 0; cut <= bytes.length; cut++) expect(whole(readAnthropic(bytes, cut))).toEqual(whole(EVENTS))
  })

  test('gateway#75 openai', () => {
    const writer = new OpenAiStreamWriter(HEAD, true)
    const bytes = Buffer.from(EVENTS.map((event) => writer.write(event)).join('') + writer.end(NO_USAGE))
    const expected = writeOpenAiAnswer(HEAD, EVENTS.filter(({ kind }) => kind !== 'signature').map(asOpenAi))
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(writeOpenAiAnswer(HEAD, readOpenAi(bytes, cut))).toEqual(expected)
    }
  })

  const asOpenAi = (event: Said): Said => (event.kind === 'reasoning' ? { ...event, family: 'openai' } : event)
})

test('whole answers in each dialect are what their streams say', () => {
  const message = JSON.stringify(whole(EVENTS))
  expect(whole(saidOf(new AnthropicReader().readMessage(message)))).toEqual(whole(EVENTS))
  const completion = writeOpenAiAnswer(HEAD, EVENTS)
  expect(completion).toMatchObject({
    choices: [
      {
        finish_reason: 'tool_calls',
        message: {
          content: 'It is wet 🌧',
          reasoning_content: 'hm so',
          thinking_blocks: [{ type: 'thinking', thinking: 'hm so', signature: 'sig' }],
          tool_calls: [
            { id: 'c0', function: { name: 'rain', arguments: '{"where":"here"}' } },
            { id: 'c1', function: { name: 'wind', arguments: '{}' } },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29, prompt_tokens_details: { cached_tokens: 5 } },
  })
})

test('an anthropic stream begins blocks from 0 without gaps, and tells estimated tokens first, true ones last', () => {
  const writer = new AnthropicStreamWriter(HEAD, { ...NO_USAGE, input: 17 })
  const text = EVENTS.map((event) => writer.write(event)).join('') + writer.end(NO_USAGE)
  const events = new EventReader().read(Buffer.from(text)).map(({ data }): Record<string, never> => JSON.parse(data))
  const starts = events.filter(({ type }) => type === 'content_block_start').map(({ index }) => index)
  expect(starts).toEqual([0, 1, 2, 3])
  expect(events[0]).toMatchObject({ type: 'message_start', message: { usage: { input_tokens: 17 } } })
  expect(events.at(-2)).toMatchObject({
    type: 'message_delta',
    delta: { stop_reason: 'tool_use' },
    usage: { input_tokens: 15, cache_read_input_tokens: 5, output_tokens: 9 },
  })
})

test('openai to the inner form and back keeps text, calls and usage, whole and in a stream', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1 })
  const call = fc.record({ name: text, args: fc.dictionary(text, fc.jsonValue()) })
  const count = fc.nat(1_000_000)
  fc.assert(
    fc.property(text, fc.array(call, { maxLength: 3 }), count, count, count, (said, calls, input, cached, output) => {
      const events: Said[] = [
        { kind: 'start', id: HEAD.id, model: HEAD.model },
        { kind: 'text', text: said },
        ...calls.flatMap(({ name, args }, index): Said[] => [
          { kind: 'call', index, id: `c${index}`, name },
          { kind: 'arguments', index, text: JSON.stringify(args) },
        ]),
        { kind: 'usage', usage: { ...NO_USAGE, input: input + cached, cacheRead: cached, output, reasoning: output } },
        { kind: 'stop', reason: calls.length > 0 ? 'tool_calls' : 'stop' },
      ]
      const expected = writeOpenAiAnswer(HEAD, events)
      const writer = new OpenAiStreamWriter(HEAD, true)
      const stream = Buffer.from(events.map((event) => writer.write(event)).join('') + writer.end(NO_USAGE))
      expect(writeOpenAiAnswer(HEAD, readOpenAi(stream, 0))).toEqual(expected)
      expect(writeOpenAiAnswer(HEAD, saidOf(new OpenAiReader(callId).read(JSON.stringify(expected))))).toEqual(expected)
    }),
  )
})

describe('gateway#67 stop reasons', () => {
  const openAi = (reason: string) =>
    new OpenAiReader(callId).read(JSON.stringify({ choices: [{ delta: {}, finish_reason: reason }] })).at(-1)
  const anthropic = (reason: string) =>
    new AnthropicReader().read(JSON.stringify({ type: 'message_delta', delta: { stop_reason: reason } })).at(-1)
  const gemini = (reason: string) =>
    new GeminiReader(String).read(JSON.stringify({ candidates: [{ finishReason: reason }] })).at(-1)
  const converse = (reason: string) =>
    new ConverseReader().read('messageStop', JSON.stringify({ stopReason: reason })).at(-1)

  test.each([
    [openAi, 'stop', 'stop'],
    [openAi, 'length', 'length'],
    [openAi, 'model_length', 'length'],
    [openAi, 'tool_calls', 'tool_calls'],
    [openAi, 'content_filter', 'content_filter'],
    [openAi, 'whatever', 'stop'],
    [anthropic, 'end_turn', 'stop'],
    [anthropic, 'stop_sequence', 'stop'],
    [anthropic, 'pause_turn', 'stop'],
    [anthropic, 'max_tokens', 'length'],
    [anthropic, 'model_context_window_exceeded', 'length'],
    [anthropic, 'tool_use', 'tool_calls'],
    [anthropic, 'refusal', 'content_filter'],
    [gemini, 'STOP', 'stop'],
    [gemini, 'MAX_TOKENS', 'length'],
    [gemini, 'SAFETY', 'content_filter'],
    [gemini, 'IMAGE_SAFETY', 'content_filter'],
    [gemini, 'MALFORMED_FUNCTION_CALL', 'malformed'],
    [converse, 'end_turn', 'stop'],
    [converse, 'max_tokens', 'length'],
    [converse, 'tool_use', 'tool_calls'],
    [converse, 'guardrail_intervened', 'content_filter'],
    [converse, 'malformed_tool_use', 'malformed'],
  ])('%o %s is %s', (read, theirs, ours) => {
    expect(read(theirs)).toEqual({ kind: 'stop', reason: ours })
  })

  test('stop with a call is a call', () => {
    const tool_calls = [{ index: 0, id: 'c1', function: { name: 'f', arguments: '{}' } }]
    const last = (finish_reason: string) =>
      new OpenAiReader(callId).read(JSON.stringify({ choices: [{ message: { tool_calls }, finish_reason }] })).at(-1)
    expect(last('stop')).toEqual({ kind: 'stop', reason: 'tool_calls' })
    expect(last('length')).toEqual({ kind: 'stop', reason: 'length' })
  })

  test('a call is told when its name has come, with the arguments that came before it; or at the end', () => {
    const reader = new OpenAiReader(callId)
    const read = (call: object, finish_reason?: string) =>
      reader.read(JSON.stringify({ choices: [{ delta: { tool_calls: [call] }, finish_reason }] }))
    expect(read({ index: 0, id: 'c1' }).map(({ kind }) => kind)).toEqual(['start'])
    expect(read({ index: 0, function: { arguments: '{"a"' } })).toEqual([])
    expect(read({ index: 0, function: { name: 'f', arguments: ':1' } })).toEqual([
      { kind: 'call', index: 0, id: 'c1', name: 'f' },
      { kind: 'arguments', index: 0, text: '{"a":1' },
    ])
    expect(read({ index: 0, function: { arguments: '}' } })).toEqual([{ kind: 'arguments', index: 0, text: '}' }])
    expect(read({ index: 1, id: 'c2', function: { arguments: '{}' } }, 'tool_calls')).toEqual([
      { kind: 'call', index: 1, id: 'c2', name: '' },
      { kind: 'arguments', index: 1, text: '{}' },
      { kind: 'stop', reason: 'tool_calls' },
    ])
  })

  test('STOP with a call is a call; a blocked prompt is an error', () => {
    const call = { content: { parts: [{ functionCall: { name: 'f' } }] }, finishReason: 'STOP' }
    const events = new GeminiReader((i) => `made_${i}`).read(JSON.stringify({ candidates: [call] }))
    expect(events).toEqual([
      { kind: 'start' },
      { kind: 'call', index: 0, id: expect.stringMatching(/^call_[0-9a-f]{24}$/), name: 'f' },
      { kind: 'arguments', index: 0, text: '{}' },
      { kind: 'stop', reason: 'tool_calls' },
    ])
    const blocked = JSON.stringify({ promptFeedback: { blockReason: 'SAFETY' } })
    expect(new GeminiReader(String).read(blocked).at(-1)).toEqual({ kind: 'error', data: blocked })
  })
})

describe('gateway#68 usage', () => {
  const usageOf = (events: readonly ChatEvent[]) => events.find((event) => event.kind === 'usage')?.usage

  test('openai counts cached parts in, groq has a place of its own', () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 30,
      prompt_tokens_details: { cached_tokens: 60 },
      completion_tokens_details: { reasoning_tokens: 20 },
    }
    const expected = { ...NO_USAGE, input: 100, cacheRead: 60, output: 30, reasoning: 20 }
    expect(usageOf(new OpenAiReader(callId).read(JSON.stringify({ choices: [], usage })))).toEqual(expected)
    expect(usageOf(new OpenAiReader(callId).read(JSON.stringify({ choices: [], x_groq: { usage } })))).toEqual(expected)
  })

  test('anthropic tells cached parts apart, the prompt first and the output last', () => {
    const reader = new AnthropicReader()
    const first = {
      input_tokens: 10,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
      output_tokens: 1,
    }
    const start = reader.read(JSON.stringify({ type: 'message_start', message: { usage: first } }))
    const known = { input: 100, cacheRead: 60, cacheWrite: 20, cacheWrite1h: 10, reasoning: 0 }
    expect(usageOf(start)).toEqual({ ...known, output: 1 })
    const end = reader.read(JSON.stringify({ type: 'message_delta', delta: {}, usage: { output_tokens: 40 } }))
    expect(usageOf(end)).toEqual({ ...known, output: 40 })
  })

  test('anthropic clients are told of no prompt below nothing, where a provider leaves its cached parts out', () => {
    expect(anthropicUsageOf({ ...NO_USAGE, input: 5, cacheRead: 100 })).toMatchObject({
      input_tokens: 0,
      cache_read_input_tokens: 100,
    })
  })

  test('gemini counts thoughts out, converse has its caches beside the input', () => {
    const usageMetadata = {
      promptTokenCount: 90,
      toolUsePromptTokenCount: 10,
      cachedContentTokenCount: 60,
      candidatesTokenCount: 10,
      thoughtsTokenCount: 20,
    }
    const gemini = new GeminiReader(String).read(JSON.stringify({ usageMetadata }))
    expect(usageOf(gemini)).toEqual({ ...NO_USAGE, input: 100, cacheRead: 60, output: 30, reasoning: 20 })
    const usage = {
      inputTokens: 10,
      outputTokens: 30,
      cacheReadInputTokens: 60,
      cacheWriteInputTokens: 30,
      cacheDetails: [{ ttl: '1h', inputTokens: 10 }],
    }
    const converse = new ConverseReader().read('metadata', JSON.stringify({ usage }))
    expect(usageOf(converse)).toEqual({
      input: 100,
      cacheRead: 60,
      cacheWrite: 20,
      cacheWrite1h: 10,
      output: 30,
      reasoning: 0,
    })
  })
})

test('what a provider tells anew is left out, whatever its shape', () => {
  const anthropic = new AnthropicReader()
  const read = (event: object) => anthropic.read(JSON.stringify(event))
  expect(read({ type: 'new_event', delta: 'odd' })).toEqual([])
  expect(read({ type: 'content_block_start', content_block: { type: 'future', data: {} } })).toEqual([])
  expect(read({ type: 'content_block_delta', delta: { type: 'future_delta', text: {} } })).toEqual([])
  const content = [
    { type: 'future', data: {} },
    { type: 'text', text: 'wet' },
  ]
  expect(anthropic.readMessage(JSON.stringify({ content }))).toContainEqual({ kind: 'text', text: 'wet' })
  expect(new ConverseReader().read('futureEvent', '{"delta":"x"}')).toEqual([])
})

test('what a provider is known to tell is of its shape, or no answer', () => {
  const read = (event: object) => () => new AnthropicReader().read(JSON.stringify(event))
  expect(read({ type: 'content_block_start', content_block: { type: 'text', text: {} } })).toThrow(AnswerError)
  expect(read({ type: 'content_block_delta', delta: 'odd' })).toThrow(AnswerError)
  expect(read({ delta: {} })).toThrow(AnswerError)
  expect(() => new ConverseReader().read('contentBlockDelta', '{"delta":"x"}')).toThrow(AnswerError)
})

test('gateway#64 a signature of Gemini stands with no thought that a client would send back to Claude', () => {
  const parts = [{ text: 'hm', thought: true, thoughtSignature: 'g' }, { text: 'wet' }]
  const said = saidOf(new GeminiReader(callId).read(JSON.stringify({ candidates: [{ content: { parts } }] })))
  const openAi = new OpenAiStreamWriter(HEAD, false)
  expect(said.map((event) => openAi.write(event)).join('')).not.toContain('thinking_blocks')
  const anthropic = new AnthropicStreamWriter(HEAD, NO_USAGE)
  const written = said.map((event) => anthropic.write(event)).join('')
  expect(written).toContain('"signature":"unsigned:gemini"')
  expect(written).not.toContain('"g"')
})

test('gateway#67 a reason that every object has is unknown like any other', () => {
  const reason = 'constructor'
  const message = { content: [], stop_reason: reason }
  const converse = { output: { message: { content: [] } }, stopReason: reason }
  const events = [
    ...new OpenAiReader(callId).read(JSON.stringify({ choices: [{ message: {}, finish_reason: reason }] })),
    ...new AnthropicReader().readMessage(JSON.stringify(message)),
    ...new ConverseReader().readAnswer(JSON.stringify(converse)),
    ...new GeminiReader(callId).read(JSON.stringify({ candidates: [{ finishReason: reason }] })),
  ]
  const stop = { kind: 'stop', reason: 'stop' }
  expect(events.filter(({ kind }) => kind === 'stop')).toEqual([stop, stop, stop, stop])
})
