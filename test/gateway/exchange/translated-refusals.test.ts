import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/gateway/errors.ts'
import { anthropic, bedrock, gemini, openai } from './candidates.ts'
import { bodyOf, chat, HI, makeExchange, messages, requestOf } from './support.ts'

test.each([
  [{ n: 2 }, 'unsupported_parameter', 'n'],
  [{ functions: [{}] }, 'unsupported_parameter', 'functions'],
  [
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'video' }] }] },
    'unsupported_content',
    'messages[0].content[1].type',
  ],
  [{ tools: [{ type: 'web_search' }] }, 'unsupported_content', 'tools[0].type'],
  [
    { messages: [{ role: 'user', content: [{ type: 'text' }] }] },
    'missing_required_parameter',
    'messages[0].content[0].text',
  ],
  [{ messages: [{ role: 'tool', tool_call_id: 'z', content: 'x' }] }, 'invalid_value', 'messages'],
  [
    { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{' } }] }] },
    'invalid_value',
    'messages[0].tool_calls[0].function.arguments',
  ],
  [{ stop: ['1', '2', '3', '4', '5'] }, 'invalid_value', 'stop'],
])('gateway#65 %j is 400 %s with its place', (fields, code, param) => {
  for (const candidate of [anthropic, gemini, bedrock]) {
    expect(() => chat(candidate, fields)).toThrow(expect.objectContaining({ status: 400, code, param }))
  }
})

test('gateway#65 the message of a 400 tells the place, which the envelope of Anthropic has no other place for', () => {
  const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  const url = { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } }
  const page = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hi' } }
  const place = 'messages[0].content[0].source.type'
  expect(() => messages(openai, user([page]))).toThrow(`${place}: expected "base64"`)
  expect(() => messages(gemini, user([url]))).toThrow('messages: this model takes images as data URLs only')
  expect(() => messages(openai, { ...user('hi'), stop_sequences: ['a', 'b', 'c', 'd', 'e'] })).toThrow(
    'stop_sequences: at most 4',
  )
  expect(() => chat(anthropic, user(null))).toThrow(
    'messages[0].content: expected string, received null, or expected array, received null',
  )
  expect(() => chat(anthropic, { messages: HI, stop: ['a', 'b', 'c', 'd', 'e'] })).toThrow(/^stop: .*4 items/)
})

test('gateway#65 where nothing is said beside the system, nothing can be answered', () => {
  const silent = [{ role: 'system', content: 'Be brief.' }]
  for (const candidate of [anthropic, gemini, bedrock]) {
    for (const asked of [silent, [...silent, { role: 'user', content: '' }]]) {
      expect(() => chat(candidate, { messages: asked })).toThrow(
        expect.objectContaining({ status: 400, code: 'invalid_value', param: 'messages' }),
      )
    }
  }
  expect(() => messages(openai, { messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] })).toThrow(
    'messages need one that says something',
  )
})

test('gateway#65 a conversation that a provider would hold is refused as the official client understands', () => {
  for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }]) {
    for (const candidate of [openai, gemini, bedrock]) {
      const fault = thrown(() => messages(candidate, { thread }))
      expect(fault).toMatchObject({ status: 400, code: 'unsupported_parameter', param: 'thread' })
      expect(fault.toAnthropic('r').error).toMatchObject({ details: { error_code: 'thread_unsupported_request' } })
    }
  }
  expect(bodyOf(messages(openai, { thread: null, compaction: null }))).toHaveProperty('messages')
  expect(() => messages(openai, { compaction: {} })).toThrow(expect.objectContaining({ param: 'compaction' }))
})

function thrown(work: () => unknown): GatewayError {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('it was not refused')
}

test('gateway#54 system text between the turns moves to the front, and is named', () => {
  const said = [...HI, { role: 'system', content: [{ type: 'text', text: 'Now French.' }] }]
  const exchange = messages(openai, { system: 'Be brief.', messages: said })
  expect(bodyOf(exchange)['messages']).toEqual([{ role: 'system', content: 'Be brief.\n\nNow French.' }, ...HI])
  expect(exchange.dropped).toEqual(['messages.system_position'])
})

test('what cannot be carried is named', () => {
  const asked = {
    logprobs: true,
    store: false,
    seed: 5,
    user: 'u',
    messages: [
      {
        role: 'user',
        name: 'ann',
        content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=', detail: 'high' } }],
      },
    ],
  }
  expect([...chat(bedrock, asked).dropped].sort()).toEqual([
    'logprobs',
    'messages.image_url.detail',
    'messages.name',
    'seed',
    'store',
    'user',
  ])
  const marked = { system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] }
  for (const candidate of [openai, gemini]) expect(messages(candidate, marked).dropped).toEqual(['cache_control'])
  expect(messages(bedrock, marked).dropped).toEqual([])
})

test('embeddings never become a chat', () => {
  const embeddings = makeExchange(requestOf('embeddings', { model: 'a', input: 'hi' }), gemini)
  expect(bodyOf(embeddings)).toHaveProperty('requests')
})
