import { describe, expect, test } from 'vitest'
import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import { anthropic, bedrock, gemini, openai, vertex } from './candidates.ts'
import { bodyOf, bytesOf, candidateOf, chat, HI, messages, NOW, read } from './support.ts'

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
      const told = chat(candidate).answer(bytesOf(answer))
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
      expect(read(messages(candidate).answer(bytesOf(answer)).body)).toMatchObject({
        type: 'message',
        content: [{ type: 'text', text: 'wet' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 6, cache_read_input_tokens: 3, output_tokens: 2 },
      })
    }
  })

  test('a provider that reports nothing leaves an estimate for the client, and none in the record', () => {
    const { body, facts } = chat(anthropic).answer(
      bytesOf({ content: [{ type: 'text', text: 'wet' }], stop_reason: 'end_turn' }),
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
    expect(() => messages(openai, { mcp_servers: [{ type: 'url', url: 'https://x.test', name: 'x' }] })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'mcp_servers' }),
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
