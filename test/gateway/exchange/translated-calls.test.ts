import { describe, expect, test } from 'vitest'
import {
  awsMessage,
  bytesOf,
  candidateOf,
  chat,
  chunksIn,
  eventsIn,
  faultOf,
  makeExchange,
  messages,
  named,
  read,
  requestOf,
  sse,
  streamOf,
} from './support.ts'

const stream = { stream: true }

interface Chunk {
  choices: { delta: { tool_calls?: { function: { arguments: string } }[] }; finish_reason: string | null }[]
}

describe('gateway#55 calls as providers tell them, which are no two alike', () => {
  const piece = (delta: object, finish: string | null = null) => ({ choices: [{ delta, finish_reason: finish }] })
  const call = (index: number | undefined, id: string | undefined, name: string | undefined, text: string) =>
    piece({ tool_calls: [{ index, id, function: { name, arguments: text } }] })
  const inputs = (text: string): [unknown, unknown][] => {
    const said = new Map<number, [unknown, string]>()
    for (const { data } of eventsIn(text)) {
      const { type, index, content_block: block, delta } = JSON.parse(data)
      if (type === 'content_block_start') said.set(index, [block.id, ''])
      const [id, json] = said.get(index) ?? []
      if (type === 'content_block_delta') said.set(index, [id, json + delta.partial_json])
    }
    return [...said.values()].map(([id, json]) => [id, JSON.parse(json || '{}')])
  }
  const end = [piece({}, 'tool_calls'), '[DONE]']

  test.each([
    ['woven', [call(0, 'a', 'f', '{'), call(1, 'b', 'g', '{"y"'), call(0, undefined, undefined, '"x":1}')], ':2}'],
    ['begun together', [call(0, 'a', 'f', ''), call(1, 'b', 'g', '{"y":'), call(0, '', '', '{"x":1}')], '2}'],
  ])('%s', (_name, pieces, rest) => {
    const { text } = streamOf(messages(candidateOf('openai'), stream), [
      sse(...pieces, call(1, undefined, undefined, rest), ...end),
    ])
    expect(inputs(text)).toEqual([
      ['a', { x: 1 }],
      ['b', { y: 2 }],
    ])
    expect(text).toContain('"stop_reason":"tool_use"')
  })

  test('all with the same index', () => {
    const pieces = [call(0, 'a', 'f', '{"x":1}'), call(0, 'b', 'f', '{"x"'), call(0, undefined, undefined, ':2}')]
    const { text } = streamOf(messages(candidateOf('openai'), stream), [sse(...pieces, ...end)])
    expect(inputs(text)).toEqual([
      ['a', { x: 1 }],
      ['b', { x: 2 }],
    ])
  })

  test('with text and thoughts between their pieces, which stand behind them then', () => {
    const [begun, more] = [call(0, 'a', 'f', '{"x":'), call(0, undefined, undefined, '1}')]
    const [thought, wet] = [piece({ reasoning_content: 'hm' }), piece({ content: 'wet' })]
    const blocks = (pieces: readonly (object | string)[]): unknown[] => {
      const { text } = streamOf(messages(candidateOf('openai'), stream), [sse(...pieces)])
      const events = eventsIn(text).map(({ data }): { type: string; content_block?: object } => JSON.parse(data))
      return events.filter(({ type }) => type === 'content_block_start').map((event) => event.content_block)
    }
    const a = { type: 'tool_use', id: 'a', input: {} }
    const b = { type: 'tool_use', id: 'b', input: {} }
    const said = [{ type: 'thinking' }, { type: 'text' }]
    expect(blocks([begun, thought, wet, more, wet, ...end])).toMatchObject([a, ...said])
    const woven = [begun, thought, call(1, 'b', 'g', ''), wet, more, call(1, undefined, undefined, '{}'), wet]
    expect(blocks([...woven, ...end])).toMatchObject([a, { type: 'thinking' }, b, { type: 'text' }])
    expect(blocks([begun, thought, wet, piece({}, 'length'), '[DONE]'])).toMatchObject([a, ...said])
    const { text } = streamOf(messages(candidateOf('openai'), stream), [sse(...woven, ...end)])
    expect(text.match(/"partial_json":"[^}]*}"|"text":"wet"/g)).toEqual([
      '"partial_json":"1}"',
      '"partial_json":"{}"',
      '"text":"wet"',
      '"text":"wet"',
    ])
  })

  test('a call that stays open holds back a bounded text', () => {
    const pieces = [call(0, 'a', 'f', '{'), piece({ content: 'x'.repeat(1024 * 1024) })]
    const told = (...events: object[]) =>
      messages(candidateOf('openai'), stream)
        .stream()
        .read(Buffer.from(sse(...events)))
    expect(told(...pieces).state).toBe('content')
    expect(faultOf(() => told(...pieces, ...pieces.slice(1), ...pieces.slice(1)))).toMatchObject({
      error: { code: 'upstream_invalid_response' },
    })
  })

  test('without an index, with the id in every piece or in none', () => {
    const pieces = [
      call(undefined, 'a', 'f', '{"x"'),
      call(undefined, 'a', undefined, ':1}'),
      call(undefined, undefined, 'g', '{"y"'),
      call(undefined, undefined, undefined, ':2}'),
    ]
    const { text } = streamOf(messages(candidateOf('openai'), stream), [sse(...pieces, ...end)])
    expect(inputs(text)).toEqual([
      ['a', { x: 1 }],
      [expect.stringMatching(/^call_/), { y: 2 }],
    ])
  })

  test('a call without arguments has none that are JSON', () => {
    const { text } = streamOf(chat(candidateOf('anthropic'), stream), [
      named(
        { type: 'message_start' },
        {
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'tool_use', id: 'a', name: 'f', input: {} },
        } as never,
        { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '' } } as never,
        { type: 'content_block_stop', index: 0 } as never,
        { type: 'message_delta', delta: { stop_reason: 'tool_use' } } as never,
        { type: 'message_stop' },
      ),
    ])
    const deltas = (chunksIn(text) as unknown as Chunk[]).map(({ choices }) => choices[0]?.delta)
    expect(deltas.flatMap((delta) => delta?.tool_calls ?? []).map((each) => each.function.arguments)).toEqual([
      '',
      '{}',
    ])
  })
})

test('gateway#55 arguments are sent, and told, as they came: no digit is lost, no name that stands twice', () => {
  const raw = '{"id":9007199254740993, "x":1e400,"x":2}'
  const asked = `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":${raw}}]}]}`
  for (const candidate of [candidateOf('gemini'), candidateOf('bedrock')]) {
    expect(makeExchange(requestOf('messages', asked), candidate).body.toString()).toContain(raw)
  }
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: raw } }
  const answer = { choices: [{ message: { tool_calls: [call] }, finish_reason: 'tool_calls' }] }
  expect(messages(candidateOf('openai')).answer(bytesOf(answer)).body.toString()).toContain(`"input":${raw}`)
  const said = `{"content":[{"type":"tool_use","id":"c","name":"f","input":${raw}}],"stop_reason":"tool_use"}`
  expect(chat(candidateOf('anthropic')).answer(Buffer.from(said)).body.toString()).toContain(JSON.stringify(raw))
})

test('gateway#67 a reason to stop that comes with every piece is told once, at the end', () => {
  const said = (text: string) => ({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] })
  const { text } = streamOf(chat(candidateOf('gemini'), stream), [sse(said('a'), said('b'))])
  const chunks = chunksIn(text) as unknown as Chunk[]
  expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual([null, null, null, 'stop'])
})

test('gateway#36 #79 an error that is an object of its own is none of the answer', () => {
  const broken = sse({ object: 'error', message: 'no more memory', type: 'InternalServerError', code: 500 }, '[DONE]')
  const begun = sse({ choices: [{ delta: { content: 'x' }, finish_reason: null }] })
  for (const exchange of [chat, messages].map((make) => make(candidateOf('openai-compatible'), stream))) {
    for (const text of [broken, begun + broken]) {
      const fault = faultOf(() => exchange.stream().read(Buffer.from(text)))
      expect(fault).toMatchObject({ class: 'transient', error: { message: 'no more memory' } })
    }
  }
})

test('gateway#67 calls that no reason follows are why an answer ends', () => {
  const calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }]
  const openai = candidateOf('openai')
  const whole = messages(openai).answer(bytesOf({ choices: [{ message: { tool_calls: calls }, finish_reason: null }] }))
  expect(read(whole.body)).toMatchObject({ stop_reason: 'tool_use' })
  const pieces = sse({ choices: [{ delta: { tool_calls: calls } }] }, '[DONE]')
  expect(streamOf(messages(openai, stream), [pieces]).text).toContain('"stop_reason":"tool_use"')
  const said = named(
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'a', name: 'f' } } as never,
    { type: 'message_stop' },
  )
  expect(streamOf(chat(candidateOf('anthropic'), stream), [said]).text).toContain('"finish_reason":"tool_calls"')
})

test('gateway#68 what was written to a cache, and thought, is told to clients of either family', () => {
  const usage = {
    input_tokens: 5,
    cache_read_input_tokens: 3,
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 1 },
    output_tokens: 9,
    output_tokens_details: { thinking_tokens: 4 },
  }
  const message = bytesOf({ content: [], stop_reason: 'end_turn', usage })
  const completion = chat(candidateOf('anthropic')).answer(message).body
  expect(read(completion)['usage']).toMatchObject({
    prompt_tokens: 11,
    prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 4 },
  })
  expect(read(messages(candidateOf('openai')).answer(completion).body)['usage']).toMatchObject({
    input_tokens: 5,
    cache_creation_input_tokens: 3,
    cache_read_input_tokens: 3,
    output_tokens: 9,
    output_tokens_details: { thinking_tokens: 4 },
  })
})

test('gateway#67 tokens that Bedrock tells before the stop do not end the answer', () => {
  const said = Object.entries({
    contentBlockDelta: { contentBlockIndex: 0, delta: { text: 'x' } },
    metadata: { usage: { inputTokens: 3, outputTokens: 2 } },
    messageStop: { stopReason: 'max_tokens' },
  }).map(([type, event]) => awsMessage({ ':message-type': 'event', ':event-type': type }, event))
  const { text } = streamOf(chat(candidateOf('bedrock'), stream), said)
  expect(text).toContain('"finish_reason":"length"')
  expect(faultOf(() => streamOf(chat(candidateOf('bedrock'), stream), said.slice(0, 2)))).toMatchObject({
    error: { code: 'upstream_truncated' },
  })
})

test.each([
  { reasoning: 'hm' },
  { reasoning_content: 'hm' },
  { reasoning_content: '', reasoning: 'hm' },
  { reasoning_content: null, reasoning: 'hm' },
])('a thought stands in %j', (thought) => {
  const body = bytesOf({ choices: [{ message: { content: 'x', ...thought }, finish_reason: 'stop' }] })
  expect(read(messages(candidateOf('openai')).answer(body).body)['content']).toMatchObject([
    { type: 'thinking', thinking: 'hm' },
    { type: 'text', text: 'x' },
  ])
})
