import { describe, expect, test } from 'vitest'
import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import { bodyOf, candidateOf, chat, HI, makeExchange, messages, NOW, requestOf, signatures } from './support.ts'

const CLAUDE = { reasoning: 'adaptive' }
const anthropic = candidateOf('anthropic', {
  row: CLAUDE,
  config: { anthropic_version: '2023-06-01', default_max_tokens: 4096 },
})
const gemini = candidateOf('gemini', { row: { reasoning: 'level' } })
const bedrock = candidateOf('bedrock', { model: 'anthropic.claude-x', row: CLAUDE })
const vertex = candidateOf('vertex', {
  dialect: 'anthropic',
  row: CLAUDE,
  config: { anthropic_version: 'vertex-2023-10-16' },
})
const openai = candidateOf('openai', { row: { reasoning: 'effort', max_tokens_field: 'max_completion_tokens' } })

const TOOL = { type: 'function', function: { name: 'rain', parameters: { type: 'object' } } }
const bytes = (json: object): Buffer => Buffer.from(JSON.stringify(json))
const read = (body: Buffer): Record<string, unknown> => JSON.parse(body.toString())

describe('gateway#54 each provider gets the request in its own form', () => {
  const turns = [{ role: 'system', content: 'Be brief.' }, ...HI]

  test('openai clients', () => {
    const said = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]
    const claude = { max_tokens: 4096, system: [{ type: 'text', text: 'Be brief.' }], messages: said }
    expect(bodyOf(chat(anthropic, { messages: turns }))).toEqual({ model: 'upstream-model', ...claude })
    expect(bodyOf(chat(anthropic, { messages: turns, stream: true }))).toMatchObject({ stream: true })
    expect(bodyOf(chat(vertex, { messages: turns, stream: true }))).toEqual({
      anthropic_version: 'vertex-2023-10-16',
      stream: true,
      ...claude,
    })
    expect(bodyOf(chat(gemini, { messages: turns, stream: true }))).toEqual({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    })
    expect(bodyOf(chat(bedrock, { messages: turns, stream: true }))).toEqual({
      system: [{ text: 'Be brief.' }],
      messages: [{ role: 'user', content: [{ text: 'hi' }] }],
    })
  })

  test('anthropic clients', () => {
    const asked = { system: 'Be brief.', stream: true }
    expect(bodyOf(messages(openai, asked))).toEqual({
      model: 'upstream-model',
      stream: true,
      stream_options: { include_usage: true },
      messages: turns,
      max_completion_tokens: 100,
    })
    expect(bodyOf(messages(candidateOf('mistral'), { ...asked, metadata: { user_id: 'u' } }))).toEqual({
      model: 'upstream-model',
      stream: true,
      messages: turns,
      max_tokens: 100,
    })
    expect(messages(candidateOf('mistral'), { metadata: { user_id: 'u' } }).dropped).toEqual(['user'])
    expect(bodyOf(messages(gemini, asked))).toMatchObject({ generationConfig: { maxOutputTokens: 100 } })
    expect(bodyOf(messages(bedrock, asked))).toMatchObject({ inferenceConfig: { maxTokens: 100 } })
    expect(bodyOf(messages(vertex, asked))).toMatchObject({ anthropic_version: 'vertex-2023-10-16', max_tokens: 100 })
  })

  test('the same answer is told to both', () => {
    const answers: [Candidate, object][] = [
      [
        anthropic,
        {
          id: 'm1',
          model: 'x',
          content: [{ type: 'text', text: 'wet' }],
          stop_reason: 'end_turn',
          usage: { input_tokens: 6, cache_read_input_tokens: 3, output_tokens: 2 },
        },
      ],
      [
        gemini,
        {
          responseId: 'm1',
          modelVersion: 'x',
          candidates: [{ content: { parts: [{ text: 'wet' }] }, finishReason: 'STOP' }],
          usageMetadata: { promptTokenCount: 9, cachedContentTokenCount: 3, candidatesTokenCount: 2 },
        },
      ],
      [
        bedrock,
        {
          output: { message: { content: [{ text: 'wet' }] } },
          stopReason: 'end_turn',
          usage: { inputTokens: 6, cacheReadInputTokens: 3, outputTokens: 2 },
        },
      ],
      [
        openai,
        {
          id: 'm1',
          model: 'x',
          choices: [{ message: { content: 'wet' }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 3 } },
        },
      ],
    ]
    for (const [candidate, answer] of answers.filter(([each]) => each !== openai)) {
      const told = chat(candidate).answer(bytes(answer))
      expect(read(told.body)).toMatchObject({
        object: 'chat.completion',
        created: NOW / 1000,
        choices: [{ message: { role: 'assistant', content: 'wet' }, finish_reason: 'stop' }],
        usage: {
          prompt_tokens: 9,
          completion_tokens: 2,
          total_tokens: 11,
          prompt_tokens_details: { cached_tokens: 3 },
        },
      })
      expect(told.facts).toMatchObject({
        usage: { input: 9, cacheRead: 3, output: 2 },
        finishReason: 'stop',
        textBytes: 3,
      })
    }
    for (const [candidate, answer] of answers.filter(([each]) => each !== anthropic)) {
      expect(read(messages(candidate).answer(bytes(answer)).body)).toMatchObject({
        type: 'message',
        content: [{ type: 'text', text: 'wet' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 6, cache_read_input_tokens: 3, output_tokens: 2 },
      })
    }
  })

  test('a provider that reports nothing leaves an estimate for the client, and none in the record', () => {
    const { body, facts } = chat(anthropic).answer(
      bytes({ content: [{ type: 'text', text: 'wet' }], stop_reason: 'end_turn' }),
    )
    expect(read(body)).toMatchObject({ usage: { prompt_tokens: 1, completion_tokens: 1 } })
    expect(facts.usage).toBeUndefined()
  })
})

describe('gateway#55 what a tool shows reaches each provider', () => {
  const shown = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }
  const history = [
    {
      role: 'assistant',
      content: [
        { type: 'tool_use', id: 'a', name: 'look', input: { x: 1 } },
        { type: 'tool_use', id: 'b', name: 'see', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'b', is_error: true, content: 'broken' },
        { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'see' }, shown] },
      ],
    },
  ]

  test('gemini, converse', () => {
    expect(bodyOf(messages(gemini, { messages: history }))['contents']).toMatchObject([
      { role: 'model', parts: [{ functionCall: { name: 'look', args: { x: 1 } } }, { functionCall: { name: 'see' } }] },
      {
        role: 'user',
        parts: [
          { functionResponse: { name: 'look', response: { result: 'see' } } },
          { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
          { functionResponse: { name: 'see', response: { error: 'broken' } } },
        ],
      },
    ])
    expect(bodyOf(messages(bedrock, { messages: history }))['messages']).toMatchObject([
      { content: [{ toolUse: { toolUseId: 'a' } }, { toolUse: { toolUseId: 'b' } }] },
      {
        content: [
          {
            toolResult: { toolUseId: 'a', status: 'success', content: [{ text: 'see' }, { image: { format: 'png' } }] },
          },
          { toolResult: { toolUseId: 'b', status: 'error' } },
        ],
      },
    ])
  })

  test('tools that the provider runs are refused with their place', () => {
    const run = [{ role: 'assistant', content: [{ type: 'server_tool_use', id: 'x', name: 'web_search', input: {} }] }]
    expect(() => messages(openai, { messages: run })).toThrow(
      expect.objectContaining({ code: 'unsupported_content', status: 400, param: 'messages[0].content[0].type' }),
    )
    expect(() => messages(openai, { tools: [{ type: 'web_search_20250305', name: 'w' }] })).toThrow(
      expect.objectContaining({ code: 'unsupported_content', param: 'tools[0].type' }),
    )
  })
})

test('gateway#57 images by URL where the provider fetches them, else 400; PDFs everywhere', () => {
  const show = (part: object) => ({ messages: [{ role: 'user', content: [part] }] })
  const byUrl = show({ type: 'image_url', image_url: { url: 'https://x.test/a.png' } })
  expect(bodyOf(chat(anthropic, byUrl))['messages']).toMatchObject([
    { content: [{ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }] },
  ])
  for (const candidate of [gemini, bedrock]) {
    expect(() => chat(candidate, byUrl)).toThrow(
      expect.objectContaining({ code: 'unsupported_content', param: 'messages' }),
    )
  }
  expect(() => chat(anthropic, show({ type: 'image_url', image_url: { url: 'http://x.test/a.png' } }))).toThrow(
    expect.objectContaining({ status: 400, param: 'messages[0].content[0]' }),
  )
  const pdf = show({ type: 'file', file: { filename: 'a_b.pdf', file_data: 'data:application/pdf;base64,aGk=' } })
  expect(JSON.stringify(bodyOf(chat(anthropic, pdf)))).toContain('"media_type":"application/pdf","data":"aGk="')
  expect(JSON.stringify(bodyOf(chat(gemini, pdf)))).toContain(
    '{"inlineData":{"mimeType":"application/pdf","data":"aGk="}}',
  )
  expect(JSON.stringify(bodyOf(chat(bedrock, pdf)))).toContain(
    '{"document":{"format":"pdf","name":"a-b","source":{"bytes":"aGk="}}}',
  )
  const audio = show({ type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } })
  expect(JSON.stringify(bodyOf(chat(gemini, audio)))).toContain('"mimeType":"audio/wav"')
  for (const candidate of [anthropic, bedrock]) {
    expect(() => chat(candidate, audio)).toThrow(expect.objectContaining({ code: 'unsupported_content' }))
  }
})

test('gateway#58 anthropic clients ask openai for a schema', () => {
  const format = { type: 'json_schema', schema: { type: 'object' } }
  expect(bodyOf(messages(openai, { output_config: { format } }))['response_format']).toEqual({
    type: 'json_schema',
    json_schema: { name: 'answer', schema: { type: 'object' } },
  })
})

test('gateway#59 thinking takes no sampling; a budget on Bedrock is measured against a cap', () => {
  const asked = { reasoning_effort: 'high', temperature: 0.5 }
  const exchange = chat(anthropic, asked)
  expect(bodyOf(exchange)).not.toHaveProperty('temperature')
  expect(exchange.dropped).toEqual(['temperature'])
  const budget = candidateOf('bedrock', { model: 'anthropic.claude-x', row: { reasoning: 'budget' } })
  expect(bodyOf(chat(budget, { reasoning_effort: 'high' }))).toMatchObject({
    inferenceConfig: { maxTokens: 4096 },
    additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 3072 } },
  })
})

test('gateway#60 the newest version of Anthropic takes no sampling, the older does', () => {
  const asked = { temperature: 0.5, top_p: 0.9 }
  expect(bodyOf(chat(anthropic, asked))).toMatchObject(asked)
  const newest = chat(candidateOf('anthropic', { config: { anthropic_version: '2026-10-21' } }), asked)
  expect(newest.dropped).toEqual(['temperature', 'top_p'])
  expect(bodyOf(newest)).not.toHaveProperty('temperature')
  expect(chat(candidateOf('bedrock', { row: { sampling: false } }), asked).dropped).toEqual(['temperature', 'top_p'])
  expect(() =>
    chat(candidateOf('anthropic', { config: { anthropic_version: '2026-10-21' } }), asked, { strict: true }),
  ).toThrow(expect.objectContaining({ code: 'unsupported_parameter', param: 'temperature' }))
})

test("gateway#61 the default cap is the credential's; the field is the model's, else the kind's", () => {
  const own = candidateOf('anthropic', { config: { default_max_tokens: 900 } })
  expect(bodyOf(chat(own))).toMatchObject({ max_tokens: 900 })
  expect(bodyOf(chat(own, {}, { maxOutputTokens: 50 }))).toMatchObject({ max_tokens: 50 })
  expect(bodyOf(messages(candidateOf('openai')))).toHaveProperty('max_completion_tokens')
  expect(bodyOf(messages(candidateOf('ollama')))).toHaveProperty('max_tokens')
  expect(bodyOf(messages(candidateOf('openai', { row: { max_tokens_field: 'max_tokens' } })))).toHaveProperty(
    'max_tokens',
  )
  expect(bodyOf(messages(candidateOf('openai'), {}, { maxOutputTokens: 50 }))).toMatchObject({
    max_completion_tokens: 50,
  })
})

const THOUGHT = { type: 'thinking', thinking: 'hm', signature: 's1' }
const CALLED = {
  id: 'm',
  model: 'x',
  content: [
    THOUGHT,
    { type: 'redacted_thinking', data: 'r1' },
    { type: 'tool_use', id: 'call_62', name: 'rain', input: {} },
  ],
  stop_reason: 'tool_use',
}
const secondTurn = (id: string) => ({
  tools: [TOOL],
  reasoning_effort: 'high',
  messages: [
    ...HI,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'rain', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: id, content: 'wet' },
  ],
})

describe('gateway#62 Claude thinks on with tools, though the client drops signatures', () => {
  test('the second turn carries what the first had', () => {
    expect(read(chat(anthropic, { tools: [TOOL] }).answer(bytes(CALLED)).body)).toMatchObject({
      choices: [
        { message: { reasoning_content: 'hm', thinking_blocks: [THOUGHT, { type: 'redacted_thinking', data: 'r1' }] } },
      ],
    })
    for (const candidate of [anthropic, vertex]) {
      const exchange = chat(candidate, secondTurn('call_62'))
      expect(bodyOf(exchange)).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } })
      expect(bodyOf(exchange)['messages']).toMatchObject([
        {},
        {
          role: 'assistant',
          content: [THOUGHT, { type: 'redacted_thinking', data: 'r1' }, { type: 'tool_use', id: 'call_62' }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_62' }] },
      ])
    }
    expect(JSON.stringify(bodyOf(chat(bedrock, secondTurn('call_62'))))).toContain(
      '{"reasoningText":{"text":"hm","signature":"s1"}}',
    )
  })

  test('lost, or of another organization: without thinking, and named', () => {
    const lost = chat(anthropic, secondTurn('call_unknown'))
    expect(lost.dropped).toEqual(['reasoning_effort'])
    expect(bodyOf(lost)).not.toHaveProperty('thinking')
    expect(chat(anthropic, secondTurn('call_62'), { organizationId: 8 }).dropped).toEqual(['reasoning_effort'])
  })
})

describe('gateway#63 calls of Gemini', () => {
  const part = { functionCall: { name: 'rain', args: { at: 1 } }, thoughtSignature: 'g1' }
  const answer = {
    candidates: [{ content: { parts: [part, { functionCall: { name: 'rain' } }] }, finishReason: 'STOP' }],
  }
  const idsOf = (body: Buffer): string[] =>
    [...body.toString().matchAll(/"id":"(call_[^"]+)"/g)].map(([, id]) => id ?? '')

  test('get ids that stay the same for the same conversation, and differ otherwise', () => {
    const first = idsOf(chat(gemini).answer(bytes(answer)).body)
    expect(new Set(first).size).toBe(2)
    expect(idsOf(chat(gemini).answer(bytes(answer)).body)).toEqual(first)
    const next = idsOf(chat(gemini, { messages: [...HI, ...HI] }).answer(bytes(answer)).body)
    expect(next).not.toEqual(first)
  })

  test('get their signature back, from the client or from memory; else the placeholder', () => {
    const { body } = chat(gemini).answer(bytes(answer))
    expect(body.toString()).toContain('"extra_content":{"google":{"thought_signature":"g1"}}')
    const [id = ''] = idsOf(body)
    const sent = (call: string) => JSON.stringify(bodyOf(chat(gemini, secondTurn(call)))['contents'])
    expect(sent(id)).toContain('"thoughtSignature":"g1"')
    expect(sent('call_lost')).toContain('"thoughtSignature":"skip_thought_signature_validator"')
    const use = [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'rain', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'wet' }] },
    ]
    expect(JSON.stringify(bodyOf(messages(gemini, { messages: use })))).toContain('"thoughtSignature":"g1"')
    expect(signatures.find(8, id)).toBeUndefined()
  })
})

describe('gateway#64 thoughts go back to the family that had them', () => {
  const answered = (candidate: Candidate, answer: object) =>
    read(messages(candidate).answer(bytes(answer)).body)['content']
  const geminis = {
    candidates: [{ content: { parts: [{ text: 'hm-g', thought: true }, { text: 'so' }] }, finishReason: 'STOP' }],
  }
  const openais = { choices: [{ message: { reasoning_content: 'hm-o', content: 'so' }, finish_reason: 'stop' }] }
  const sent = (candidate: Candidate, content: unknown) =>
    JSON.stringify(bodyOf(messages(candidate, { messages: [...HI, { role: 'assistant', content }, ...HI] })))

  test('as an anthropic client returns them', () => {
    const [ofGemini, ofOpenAi] = [answered(gemini, geminis), answered(openai, openais)]
    expect(ofGemini).toMatchObject([
      { type: 'thinking', thinking: 'hm-g' },
      { type: 'text', text: 'so' },
    ])
    expect(sent(gemini, ofGemini)).toContain('hm-g')
    expect(sent(openai, ofOpenAi)).toContain('"reasoning_content":"hm-o"')
    for (const [candidate, content] of [
      [openai, ofGemini],
      [bedrock, ofGemini],
      [gemini, ofOpenAi],
      [bedrock, ofOpenAi],
    ] as const) {
      expect(sent(candidate, content)).not.toContain('hm-')
    }
    expect(sent(bedrock, [THOUGHT, { type: 'text', text: 'so' }])).toContain('"signature":"s1"')
    expect(sent(openai, [THOUGHT, { type: 'text', text: 'so' }])).not.toContain('hm')
  })
})

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
