import { describe, expect, test } from 'vitest'
import { answer, call, CONVERSATION, openAi, TOOL, translate, type Translated } from './support.ts'

test('gateway#56 choice none keeps converse from tools; a single call', () => {
  expect(openAi('converse', { tools: [TOOL], tool_choice: 'none' }).body).not.toHaveProperty('toolConfig')
  expect(openAi('anthropic', { tools: [TOOL], parallel_tool_calls: false }).body['tool_choice']).toEqual({
    type: 'auto',
    disable_parallel_tool_use: true,
  })
  expect(openAi('gemini', { tools: [TOOL], parallel_tool_calls: false }).dropped).toEqual(['parallel_tool_calls'])
})

test('gateway#58 JSON mode and JSON Schema', () => {
  const schema = { type: 'object', properties: { a: { default: null } } }
  const body = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }
  expect(openAi('anthropic', body).body['output_config']).toEqual({ format: { type: 'json_schema', schema } })
  expect(openAi('gemini', body).body['generationConfig']).toEqual({
    responseMimeType: 'application/json',
    responseJsonSchema: schema,
  })
  expect(openAi('converse', body).body['outputConfig']).toEqual({
    textFormat: { type: 'json_schema', structure: { jsonSchema: { name: 'x', schema: JSON.stringify(schema) } } },
  })
  expect(openAi('anthropic', { response_format: { type: 'json_object' } }).body['system']).toMatchObject([
    { type: 'text' },
  ])
})

describe('gateway#59 effort', () => {
  test('adaptive, budget, level', () => {
    const effort = { reasoning_effort: 'high' }
    expect(openAi('anthropic', effort).body).toMatchObject({
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
    })
    expect(openAi('anthropic', { ...effort, max_tokens: 9000 }, { reasoning: 'budget' }).body['thinking']).toEqual({
      type: 'enabled',
      budget_tokens: 9000 - 1024,
    })
    expect(openAi('gemini', effort, { reasoning: 'level' }).body['generationConfig']).toEqual({
      thinkingConfig: { thinkingLevel: 'high', includeThoughts: true },
    })
    expect(
      openAi('anthropic', { reasoning_effort: 'max' }, { efforts: ['low', 'high'] }).body['output_config'],
    ).toEqual({
      effort: 'high',
    })
  })

  test('a budget means the effort at or below it', () => {
    const thinking = { type: 'enabled', budget_tokens: 9000 }
    const body = { max_tokens: 20_000, thinking, messages: [{ role: 'user', content: 'hi' }] }
    expect(translate('anthropic', 'openai', body, { reasoning: 'effort' }).body['reasoning_effort']).toBe('medium')
  })

  test('a forced tool, too small a cap, or calls whose thoughts are lost turn thinking off', () => {
    const off = { thinking: undefined, dropped: ['reasoning_effort'] }
    const seen = ({ body, dropped }: Translated) => ({ thinking: body['thinking'], dropped })
    const effort = { reasoning_effort: 'high' }
    expect(seen(openAi('anthropic', { ...effort, tools: [TOOL], tool_choice: 'required' }))).toEqual(off)
    expect(seen(openAi('anthropic', { ...effort, max_tokens: 2000 }, { reasoning: 'budget' }))).toEqual(off)
    expect(openAi('gemini', { ...effort, max_tokens: 2000 }, { reasoning: 'budget' })).toMatchObject({
      body: { generationConfig: { thinkingConfig: { thinkingBudget: 0, includeThoughts: false } } },
      dropped: ['reasoning_effort'],
    })
    const lost = [{ role: 'user', content: 'x' }, { role: 'assistant', tool_calls: [call('a')] }, answer('a')]
    expect(seen(openAi('anthropic', { ...effort, messages: lost }))).toEqual(off)
  })
})

test('gateway#60 sampling is dropped and named where a model takes none', () => {
  const body = { temperature: 0.5, top_p: 0.9 }
  expect(openAi('anthropic', body, { sampling: false })).toMatchObject({ dropped: ['temperature', 'top_p'] })
  expect(openAi('anthropic', body).body).toMatchObject(body)
})

test('gateway#61 absent max_tokens gets the default; the field is that of the model', () => {
  expect(openAi('anthropic', {}).body['max_tokens']).toBe(4096)
  const body = { max_tokens: 7, messages: [{ role: 'user', content: 'hi' }] }
  expect(translate('anthropic', 'openai', body).body['max_completion_tokens']).toBe(7)
  expect(translate('anthropic', 'openai', body, { maxTokensField: 'max_tokens' }).body['max_tokens']).toBe(7)
})

test('gateway#63 a call of Gemini without its signature gets the placeholder, once a turn', () => {
  const messages = [
    { role: 'assistant', tool_calls: [call('a'), call('b')] },
    answer('a'),
    answer('b'),
    {
      role: 'assistant',
      tool_calls: [{ ...call('c'), extra_content: { google: { thought_signature: 'kept' } } }],
    },
    answer('c'),
  ]
  const { contents } = openAi('gemini', { messages }, { reasoning: 'level' }).body
  expect(contents).toMatchObject([
    { parts: [{ thoughtSignature: 'skip_thought_signature_validator' }, {}] },
    {},
    { parts: [{ thoughtSignature: 'kept' }] },
    {},
  ])
  expect(JSON.stringify(contents).match(/thoughtSignature/g)).toHaveLength(2)
})

test('gateway#64 reasoning goes back to the family it came from, and to no other', () => {
  const messages = [
    {
      role: 'assistant',
      content: 'x',
      reasoning_content: 'hm',
      thinking_blocks: [{ type: 'thinking', thinking: 'hm', signature: 's' }],
    },
    { role: 'user', content: 'y' },
  ]
  expect(JSON.stringify(openAi('anthropic', { messages }).body)).toContain('"signature":"s"')
  expect(JSON.stringify(openAi('gemini', { messages }).body)).not.toContain('hm')
  expect(JSON.stringify(openAi('openai', { messages }).body)).not.toContain('hm')
})

test.each([
  [{ n: 2 }, 'n'],
  [{ functions: [] }, 'functions'],
  [
    { messages: [{ role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } }] },
    'messages[0].function_call',
  ],
  [{ messages: [{ role: 'user', content: [{ type: 'video' }] }] }, 'messages[0].content'],
  [
    { messages: [{ role: 'assistant', tool_calls: [call('a', '[1]')] }] },
    'messages[0].tool_calls[0].function.arguments',
  ],
  [{ messages: [answer('z')] }, 'messages'],
  [{ messages: undefined }, 'messages'],
  [{ tools: [{ type: 'web_search' }] }, 'tools[0].type'],
])('gateway#65 %j is refused with its place', (body, param) => {
  expect(() => openAi('anthropic', body)).toThrow(expect.objectContaining({ param: expect.stringContaining(param) }))
})

test('gateway#65 what is null is not asked for', () => {
  const nothing = { n: null, functions: null, function_call: null, tools: null, stop: null, logprobs: null }
  const said = { role: 'assistant', content: 'x', function_call: null, tool_calls: null, refusal: null }
  const { body, dropped } = openAi('anthropic', { ...nothing, messages: [said, { role: 'user', content: 'y' }] })
  expect(body).toEqual({
    max_tokens: 4096,
    messages: [
      { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
      { role: 'user', content: [{ type: 'text', text: 'y' }] },
    ],
  })
  expect(dropped).toEqual([])
})

test('a strict tool is named where the provider promises nothing', () => {
  const tools = [{ ...TOOL, function: { ...TOOL.function, strict: true } }]
  expect(openAi('gemini', { tools }).dropped).toEqual(['tools.strict'])
  expect(openAi('gemini', { tools: [TOOL] }).dropped).toEqual([])
  expect(openAi('anthropic', { tools }).dropped).toEqual([])
})

test('later system text moves to the front and is named; what no dialect carries is named', () => {
  const messages = [...CONVERSATION, { role: 'developer', content: 'Hurry.' }]
  const { body, dropped } = openAi('anthropic', { messages, logprobs: true })
  expect(body['system']).toMatchObject([{ text: 'Be brief.' }, { text: 'Hurry.' }])
  expect(dropped.sort()).toEqual(['logprobs', 'messages.system_position'])
})
