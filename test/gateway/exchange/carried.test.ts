import { describe, expect, test } from 'vitest'
import { anthropic, bedrock, gemini, openai, TOOL } from './candidates.ts'
import { bodyOf, candidateOf, chat, HI, makeExchange, messages, requestOf } from './support.ts'

const PNG = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }
const PDF = {
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
  title: 'a',
}
const MARK = { cache_control: { type: 'ephemeral' } }

describe('gateway#54 what stands inside a field that is known, and is not itself, is named', () => {
  test('of anthropic clients', () => {
    const asked = {
      tools: [
        { name: 'rain', input_schema: { type: 'object', $schema: 'x' }, defer_loading: true, input_examples: [] },
      ],
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'high', task_budget: { type: 'tokens', total: 1000 } },
      messages: [{ role: 'user', content: [{ ...PDF, citations: { enabled: true }, context: null }] }],
    }
    expect(messages(openai, asked).dropped).toEqual([
      'messages.content.citations',
      'tools.defer_loading',
      'thinking.display',
      'output_config.task_budget',
    ])
    expect(() => makeExchange(requestOf('messages', { max_tokens: 9, ...asked }, { strict: true }), openai)).toThrow(
      expect.objectContaining({ status: 400, code: 'unsupported_parameter', param: 'tools.defer_loading' }),
    )
  })

  test('of openai clients', () => {
    const said = { role: 'assistant', content: 'x', annotations: [], audio: null, reasoning_details: [{ text: 'y' }] }
    const asked = { messages: [...HI, said, ...HI], stream_options: { include_obfuscation: false } }
    for (const candidate of [anthropic, gemini, bedrock]) {
      expect(chat(candidate, asked).dropped).toEqual([
        'messages.reasoning_details',
        'stream_options.include_obfuscation',
      ])
    }
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'rain', arguments: '{}' } }
    const answered = { role: 'tool', name: 'rain', tool_call_id: 'a', content: 'no' }
    const told = { messages: [...HI, { role: 'assistant', tool_calls: [call] }, answered] }
    expect(chat(anthropic, told).dropped).toEqual([]) // said elsewhere
  })
})

test('gateway#54 a cache mark on a message is one on what it says last', () => {
  const call = { id: 'a', type: 'function', function: { name: 'rain', arguments: '{}' } }
  const asked = {
    messages: [
      { role: 'system', content: 'Be brief.', ...MARK },
      { role: 'user', content: [{ type: 'text', text: 'This?' }, PNG], ...MARK },
      { role: 'assistant', content: '', tool_calls: [call], ...MARK },
      { role: 'tool', tool_call_id: 'a', content: 'no', ...MARK },
      { role: 'assistant', content: 'Dry.', ...MARK },
    ],
  }
  const { system, messages: turns } = bodyOf(chat(anthropic, asked))
  expect(system).toEqual([{ type: 'text', text: 'Be brief.', ...MARK }])
  expect(turns).toMatchObject([
    {
      content: [
        { type: 'text', text: 'This?' },
        { type: 'image', ...MARK },
      ],
    },
    { content: [{ type: 'tool_use', ...MARK }] },
    { content: [{ type: 'tool_result', ...MARK }] },
    { content: [{ type: 'text', text: 'Dry.', ...MARK }] },
  ])
  expect(JSON.stringify(turns).match(/ephemeral/g)).toHaveLength(4)
  expect(chat(gemini, asked).dropped).toEqual(['cache_control'])
})

describe('gateway#55 what a tool shows', () => {
  const answered = (content: unknown): object => ({
    messages: [
      ...HI,
      { role: 'assistant', content: null, tool_calls: [{ id: 'a', function: { name: 'rain', arguments: '' } }] },
      { role: 'tool', tool_call_id: 'a', content },
    ],
    tools: [TOOL],
  })
  const shown = (body: Record<string, unknown>, name: string): unknown[] => {
    const turns = body[name]
    return Array.isArray(turns) ? turns.at(-1) : []
  }

  test('an image in the message of a tool reaches each provider', () => {
    const asked = answered([{ type: 'text', text: 'see' }, PNG])
    expect(shown(bodyOf(chat(anthropic, asked)), 'messages')).toMatchObject({
      content: [
        { type: 'tool_result', content: [{ text: 'see' }, { type: 'image', source: { media_type: 'image/png' } }] },
      ],
    })
    expect(shown(bodyOf(chat(gemini, asked)), 'contents')).toMatchObject({
      parts: [{ functionResponse: { response: { result: 'see' } } }, { inlineData: { mimeType: 'image/png' } }],
    })
    expect(shown(bodyOf(chat(bedrock, asked)), 'messages')).toMatchObject({
      content: [{ toolResult: { content: [{ text: 'see' }, { image: { format: 'png' } }] } }],
    })
  })

  test('a PDF in the result of a tool reaches each provider', () => {
    const asked = {
      messages: [
        ...HI,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'read', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [PDF] }] },
      ],
    }
    const url = 'data:application/pdf;base64,JVBERi0='
    expect(bodyOf(messages(openai, asked))['messages']).toMatchObject([
      {},
      { tool_calls: [{ id: 'a' }] },
      { role: 'tool', tool_call_id: 'a', content: '' },
      { role: 'user', content: [{ type: 'file', file: { filename: 'a', file_data: url } }] },
    ])
    expect(shown(bodyOf(messages(gemini, asked)), 'contents')).toMatchObject({
      parts: [{ functionResponse: { name: 'read' } }, { inlineData: { mimeType: 'application/pdf' } }],
    })
    expect(shown(bodyOf(messages(bedrock, asked)), 'messages')).toMatchObject({
      content: [{ toolResult: { content: [{ document: { format: 'pdf', name: 'a' } }] } }],
    })
  })

  test('of two results of one call both are told', () => {
    const result = (content: string): object => ({ type: 'tool_result', tool_use_id: 'a', content })
    const asked = {
      messages: [
        ...HI,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'read', input: {} }] },
        { role: 'user', content: [result('one'), result('two')] },
      ],
    }
    expect(bodyOf(messages(openai, asked))['messages']).toMatchObject([{}, {}, { role: 'tool', content: 'one\ntwo' }])
  })
})

describe('gateway#59 an effort that is below all that a model knows is named, and none that it refuses is sent', () => {
  const low = { reasoning: 'effort', efforts: ['low', 'high'] }
  const levels = { reasoning: 'level', efforts: ['low', 'high'] }
  const off = { thinking: { type: 'disabled' } }

  test('openai', () => {
    const model = candidateOf('openai', { row: low })
    for (const asked of [off, { output_config: { effort: 'minimal' } }]) {
      const exchange = messages(model, asked)
      expect(bodyOf(exchange)).not.toHaveProperty('reasoning_effort')
      expect(exchange.dropped).toEqual(['reasoning_effort'])
    }
    const knowing = messages(candidateOf('openai', { row: { ...low, efforts: ['none', 'low'] } }), off)
    expect(bodyOf(knowing)).toMatchObject({ reasoning_effort: 'none' })
    const plain = messages(candidateOf('openai', { row: {} }), off)
    expect(plain.dropped).toEqual([])
  })

  test('gemini', () => {
    const model = candidateOf('gemini', { row: levels })
    for (const effort of ['none', 'minimal']) {
      const exchange = chat(model, { reasoning_effort: effort })
      expect(bodyOf(exchange)).not.toHaveProperty('generationConfig')
      expect(exchange.dropped).toEqual(['reasoning_effort'])
    }
    expect(bodyOf(chat(gemini, { reasoning_effort: 'max' }))).toMatchObject({
      generationConfig: { thinkingConfig: { thinkingLevel: 'high' } },
    })
    const budget = candidateOf('gemini', { row: { reasoning: 'budget' } })
    expect(bodyOf(chat(budget, { reasoning_effort: 'none' }))).toMatchObject({
      generationConfig: { thinkingConfig: { thinkingBudget: 0 } },
    })
  })

  test.each([anthropic, bedrock])('claude', (candidate) => {
    const exchange = chat(candidate, { reasoning_effort: 'minimal' })
    expect(JSON.stringify(bodyOf(exchange))).not.toMatch(/effort|thinking/)
    expect(exchange.dropped).toEqual(['reasoning_effort'])
  })
})

describe('gateway#55 what comes from other models', () => {
  const conversation = (id: string, result: string): object => ({
    messages: [
      { role: 'system', content: ' ' },
      ...HI,
      { role: 'assistant', content: null, tool_calls: [{ id, function: { name: 'rain', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content: result },
    ],
    tools: [TOOL],
  })

  test('ids of calls that Claude refuses become others, alike in call and result', () => {
    for (const candidate of [anthropic, bedrock]) {
      for (const id of ['functions.rain:0', 'x'.repeat(65)]) {
        const body = JSON.stringify(bodyOf(chat(candidate, conversation(id, 'no'))))
        expect(body).not.toContain(id)
        const [made, again, ...others] = body.match(/call_[0-9a-f]{24}/g) ?? []
        expect([made === again, others]).toEqual([true, []])
      }
      expect(JSON.stringify(bodyOf(chat(candidate, conversation('toolu_1-a', 'no'))))).toContain('"toolu_1-a"')
    }
    const asked = (id: string): object => ({
      messages: [
        ...HI,
        { role: 'assistant', content: [{ type: 'tool_use', id, name: 'rain', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'no' }] },
      ],
    })
    expect(JSON.stringify(bodyOf(messages(openai, asked('functions.rain:0'))))).toContain('"functions.rain:0"')
    expect(JSON.stringify(bodyOf(messages(openai, asked('x'.repeat(41)))))).toMatch(
      /"id":"(call_[0-9a-f]{24})".*"tool_call_id":"\1"/,
    )
  })

  test('text of spaces alone, which Claude refuses, stands in no result and no system text', () => {
    expect(bodyOf(chat(anthropic, conversation('a', '\n')))).not.toHaveProperty('system')
    expect(bodyOf(chat(anthropic, conversation('a', '\n')))['messages']).toMatchObject([
      {},
      {},
      { content: [{ type: 'tool_result', content: [] }] },
    ])
    expect(bodyOf(chat(bedrock, conversation('a', '\n')))['messages']).toMatchObject([
      {},
      {},
      { content: [{ toolResult: { content: [] } }] },
    ])
  })
})

test('gateway#54 a user whose name is too long for OpenAI keeps one of its own', () => {
  const userOf = (user_id: string): unknown => bodyOf(messages(openai, { metadata: { user_id } }))['user']
  expect(userOf('user_1')).toBe('user_1')
  const long = JSON.stringify({ device_id: 'f'.repeat(64), session_id: 'a' })
  expect(userOf(long)).toMatch(/^[0-9a-f]{64}$/)
  expect(userOf(long)).toBe(userOf(long))
  expect(userOf(`${long} `)).not.toBe(userOf(long))
})
