import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { FORMS, type Form } from '../../../src/gateway/cache/form.ts'
import { mapOf } from '../../../src/gateway/cache/json.ts'
import { NO_USAGE } from '../../../src/gateway/chat/events.ts'
import type { Json } from '../../../src/gateway/chat/json.ts'
import { writeJson } from '../../../src/gateway/chat/raw-json.ts'
import type { Surface } from '../../../src/gateway/model.ts'
import { EventReader } from '../../../src/gateway/relay/sse.ts'

const USAGE = { ...NO_USAGE, input: 11, output: 7 }

const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-5',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Say “hi” 😀',
        refusal: null,
        reasoning_content: 'hm',
        annotations: [{ type: 'url_citation', url_citation: { url: 'https://example.org' } }],
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'a', arguments: '{"x":1}' } },
          {
            id: 'call_2',
            type: 'function',
            function: { name: 'b', arguments: '{}' },
            extra_content: { google: { thought_signature: 's' } },
          },
        ],
      },
      logprobs: { content: [{ token: 'Say', logprob: -0.1, bytes: [83], top_logprobs: [] }], refusal: null },
      finish_reason: 'tool_calls',
    },
    { index: 1, message: { role: 'assistant', content: 'two', refusal: null }, logprobs: null, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18, odd: { kept: true } },
  system_fingerprint: 'fp',
  service_tier: 'default',
}

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-opus-4-7',
  content: [
    { type: 'thinking', thinking: 'hm', signature: 'sig' },
    { type: 'redacted_thinking', data: 'xyz' },
    { type: 'text', text: 'Hello 😀', citations: [{ type: 'char_location', cited_text: 'x', document_index: 0 }] },
    { type: 'text', text: 'plain' },
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [{ type: 'web_search_result', url: 'https://example.org' }],
    },
    { type: 'tool_use', id: 'toolu_1', name: 'a', input: { x: [1, { y: 2 }] } },
    { type: 'tool_use', id: 'toolu_2', name: 'b', input: {} },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  stop_details: { type: 'refusal', category: 'x' },
  container: { id: 'container_1' },
  context_management: { applied_edits: [{ type: 'clear_tool_uses_20250919', cleared_tool_uses: 2 }] },
  usage: {
    input_tokens: 11,
    cache_read_input_tokens: 5,
    output_tokens: 7,
    server_tool_use: { web_search_requests: 1 },
  },
}

const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1_790_000_000,
  status: 'completed',
  model: 'gpt-5',
  output: [
    { id: 'rs_1', type: 'reasoning', summary: [] },
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hello 😀', annotations: [], logprobs: [] }],
    },
    { id: 'fc_1', type: 'function_call', status: 'completed', call_id: 'call_1', name: 'a', arguments: '{"x":1}' },
  ],
  usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
}

const formOf = (surface: Surface): Form => {
  const form = FORMS[surface]
  if (!form) throw new Error('has no form')
  return form
}

const streamOf = (surface: Surface, answer: Json, usage?: typeof USAGE): string =>
  formOf(surface).toStream(answer, usage, Buffer.from(JSON.stringify(answer)))

const assembled = (surface: Surface, stream: string, cut?: number): Json | undefined => {
  const text = assembledText(surface, stream, cut)
  return text === undefined ? undefined : mapOf(JSON.parse(text))
}

function assembledText(surface: Surface, stream: string, cut = stream.length): string | undefined {
  const assembly = formOf(surface).assemble()
  const reader = new EventReader()
  const bytes = Buffer.from(stream)
  for (const chunk of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
    for (const { data } of reader.read(chunk)) if (data !== '[DONE]') assembly.read(mapOf(JSON.parse(data)))
  }
  const whole = assembly.whole(USAGE)
  return whole && writeJson(whole)
}

test.each([
  ['chat', completion],
  ['messages', message],
  ['responses', response],
] as const)('gateway#97 %s: JSON as a stream and back is the same, wherever the stream is cut', (surface, answer) => {
  const stream = streamOf(surface, answer, USAGE)
  for (let cut = 0; cut <= Buffer.byteLength(stream); cut += 7) expect(assembled(surface, stream, cut)).toEqual(answer)
})

test('gateway#97 a stream of many pieces becomes one answer', () => {
  const chunk = (delta: object, more: object = {}): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`
  const call = (index: number, fields: object): object => ({ tool_calls: [{ index, ...fields }] })
  const stream = [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Hel' }),
    chunk({ content: 'lo' }),
    chunk(call(0, { id: 'c1', type: 'function', function: { name: 'f', arguments: '' } })),
    chunk(call(0, { function: { arguments: '{"a"' } })),
    chunk(call(1, { id: 'c2', type: 'function', function: { name: 'g', arguments: '{}' } })),
    chunk(call(0, { function: { arguments: ':1}' } })),
    chunk({}, { finish_reason: 'tool_calls' }),
    'data: [DONE]\n\n',
  ].join('')
  expect(assembled('chat', stream)).toMatchObject({
    object: 'chat.completion',
    choices: [
      {
        message: {
          role: 'assistant',
          content: 'Hello',
          tool_calls: [
            { id: 'c1', function: { name: 'f', arguments: '{"a":1}' } },
            { id: 'c2', function: { name: 'g', arguments: '{}' } },
          ],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 11, completion_tokens: 7 },
  })
})

test('gateway#97 calls of one index, or of none, are told apart by their ids', () => {
  const stream = (index: object): string =>
    [
      { id: 'a', type: 'function', function: { name: 'get_x', arguments: '{"x"' } },
      { id: '', function: { name: '', arguments: ':1}' } },
      { id: 'b', type: 'function', function: { name: 'get_y', arguments: '{"y"' } },
      { function: { arguments: ':2}' } },
    ]
      .map((call) => ({ choices: [{ index: 0, delta: { tool_calls: [{ ...index, ...call }] } }] }))
      .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
      .join('')
  const calls = [
    { id: 'a', type: 'function', function: { name: 'get_x', arguments: '{"x":1}' } },
    { id: 'b', type: 'function', function: { name: 'get_y', arguments: '{"y":2}' } },
  ]
  for (const index of [{ index: 0 }, {}]) {
    expect(assembled('chat', stream(index))?.['choices']).toMatchObject([{ message: { tool_calls: calls } }])
  }
})

test('gateway#97 the events of a response are numbered in their order', () => {
  const stream = streamOf('responses', response)
  const numbers = Array.from(stream.matchAll(/"sequence_number":(\d+)/g), ([, number]) => Number(number))
  expect(numbers).toEqual(numbers.map((_, i) => i))
  expect(numbers.length).toBeGreaterThan(10)
})

test.each([
  ['a delta that is not known', { type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta' } }],
  ['a delta of no block', { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'x' } }],
  ['more at the end', { type: 'message_delta', delta: {}, usage: {}, input_transformations: [] }],
  ['an event that is not known', { type: 'message_note' }],
])('gateway#97 a message is not put together without %s', (_, lost) => {
  const assembly = formOf('messages').assemble()
  assembly.read({ type: 'message_start', message: { id: 'm' } })
  assembly.read({ type: 'content_block_start', index: 0, content_block: { type: 'compaction' } })
  assembly.read({ type: 'message_delta', delta: {}, usage: {}, input_transformations: null })
  expect(() => assembly.read(lost)).toThrow(/lost|no block/)
})

test('gateway#97 what Anthropic tells at the end of a message stands there', () => {
  const stream = streamOf('messages', message)
  const events = new EventReader().read(Buffer.from(stream)).map(({ data }): Json => JSON.parse(data))
  const { stop_details, container, context_management } = message
  for (const name of ['stop_details', 'container', 'context_management']) {
    expect(events[0]?.['message']).not.toHaveProperty(name)
  }
  expect(events.at(-2)).toMatchObject({ delta: { stop_details, container }, context_management })
})

test('gateway#97 what a tool is given keeps every digit, from JSON to a stream and back', () => {
  const input = '{"id":9007199254740993,"most":1e400}'
  const source = `{"type":"message","content":[{"type":"tool_use","id":"t","name":"n","input":${input}}]}`
  const stream = formOf('messages').toStream(mapOf(JSON.parse(source)), undefined, Buffer.from(source))
  expect(stream).toContain(`"partial_json":${JSON.stringify(input)}`)
  expect(assembledText('messages', stream)).toContain(`"input":${input}`)
})

test('gateway#97 the usage chunk comes once when asked for, else not at all', () => {
  const chunks = (stream: string): number => stream.split('"usage"').length - 1
  const { usage: _, ...silent } = completion
  expect(chunks(streamOf('chat', completion))).toBe(0)
  expect(chunks(streamOf('chat', completion, USAGE))).toBe(1)
  expect(streamOf('chat', silent, USAGE)).toContain('"prompt_tokens":11')
  expect(streamOf('chat', completion).endsWith('data: [DONE]\n\n')).toBe(true)
})

const streaming = (stream: string) => async (): Promise<Response> =>
  new Response(stream, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })

test('gateway#97 the SDKs read such a stream as what it was', async () => {
  const {
    choices: [choice],
  } = completion
  const one = { ...completion, choices: [choice] }
  const openai = (fetch: () => Promise<Response>) => new OpenAI({ apiKey: 'x', fetch, maxRetries: 0 })
  const chat = openai(streaming(streamOf('chat', one, USAGE)))
  const final = await chat.chat.completions
    .stream({ model: 'm', messages: [], stream_options: { include_usage: true } })
    .finalChatCompletion()
  expect(final.choices[0]?.message).toMatchObject({
    content: 'Say “hi” 😀',
    tool_calls: [{ id: 'call_1' }, { id: 'call_2' }],
  })
  expect(final.usage?.total_tokens).toBe(18)
  const responses = openai(streaming(streamOf('responses', response)))
  const whole = await responses.responses.stream({ model: 'm', input: 'x' }).finalResponse()
  expect(whole.output_text).toBe('Hello 😀')
  expect(whole.output).toHaveLength(3)
  const anthropic = new Anthropic({
    apiKey: 'x',
    fetch: streaming(streamOf('messages', message)),
    maxRetries: 0,
  })
  const said = await anthropic.messages.stream({ model: 'm', max_tokens: 5, messages: [] }).finalMessage()
  expect(said.content).toEqual(message.content)
  expect(said.usage.output_tokens).toBe(7)
  expect(said).toMatchObject({ stop_reason: 'tool_use', stop_details: message.stop_details })
})

test('gateway#97 what a provider calls __proto__ reaches no other object', () => {
  const delta = JSON.parse('{"content":"hi","__proto__":{"admin":true}}')
  const stream = `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
  const whole = assembled('chat', stream)
  const isReached = 'admin' in {}
  Reflect.deleteProperty(Object.prototype, 'admin')
  expect(isReached).toBe(false)
  expect(whole).toMatchObject({ choices: [{ message: { content: 'hi' } }] })
})

test('gateway#97 blocks far apart are as many as have come', () => {
  const event = (type: string, fields: object): string => `data: ${JSON.stringify({ type, ...fields })}\n\n`
  const stream = [
    event('message_start', { message: { id: 'm', content: [] } }),
    event('content_block_start', { index: 1_000_000, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 1_000_000, delta: { type: 'text_delta', text: 'two' } }),
    event('content_block_start', { index: 7, content_block: { type: 'text', text: 'one' } }),
  ].join('')
  expect(assembled('messages', stream)?.['content']).toEqual([
    { type: 'text', text: 'one' },
    { type: 'text', text: 'two' },
  ])
})
