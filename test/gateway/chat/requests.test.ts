import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readAnthropicRequest } from '../../../src/gateway/chat/anthropic/read-request.ts'
import { writeAnthropicRequest } from '../../../src/gateway/chat/anthropic/write-request.ts'
import { writeConverseRequest } from '../../../src/gateway/chat/converse/write-request.ts'
import type { ChatRequest } from '../../../src/gateway/chat/form.ts'
import { writeGeminiRequest } from '../../../src/gateway/chat/gemini/write-request.ts'
import { readOpenAiRequest } from '../../../src/gateway/chat/openai/read-request.ts'
import { writeOpenAiRequest } from '../../../src/gateway/chat/openai/write-request.ts'
import type { Target } from '../../../src/gateway/chat/target.ts'

const TARGET: Target = {
  model: 'anthropic.claude-x',
  sampling: true,
  reasoning: 'adaptive',
  defaultMaxTokens: 4096,
  maxTokensField: 'max_completion_tokens',
}
const PNG = { mediaType: 'image/png', data: 'aGk=' }

const READERS = { openai: readOpenAiRequest, anthropic: readAnthropicRequest }
const WRITERS = {
  openai: writeOpenAiRequest,
  anthropic: writeAnthropicRequest,
  gemini: writeGeminiRequest,
  converse: writeConverseRequest,
}

interface Translated {
  body: Record<string, unknown>
  dropped: string[]
}

function translate(
  from: keyof typeof READERS,
  to: keyof typeof WRITERS,
  body: object,
  target?: Partial<Target>,
): Translated {
  const dropped = new Set<string>()
  const drop = (field: string): void => void dropped.add(field)
  const request = READERS[from]({ model: 'm', ...body }, drop)
  return { body: WRITERS[to](request, { ...TARGET, ...target }, drop), dropped: [...dropped] }
}

const openAi = (to: keyof typeof WRITERS, body: object, target?: Partial<Target>): Translated =>
  translate('openai', to, { messages: [{ role: 'user', content: 'hi' }], ...body }, target)

const TOOL = { type: 'function', function: { name: 'rain', description: 'Is it wet?', parameters: { type: 'object' } } }

const CONVERSATION = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Is it wet?' },
  { role: 'assistant', content: null, tool_calls: ['a', 'b'].map((id) => call(id)) },
  { role: 'tool', tool_call_id: 'b', content: 'no' },
  { role: 'tool', tool_call_id: 'a', content: 'yes' },
  { role: 'user', content: [{ type: 'text', text: 'And this?' }, image()] },
]

function call(id: string, args = '{"at":1}'): object {
  return { id, type: 'function', function: { name: 'rain', arguments: args } }
}

function image(): object {
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.data}` } }
}

describe('gateway#54 gateway#55 gateway#57 a conversation with calls, results and an image', () => {
  test('for anthropic', () => {
    expect(openAi('anthropic', { messages: CONVERSATION, tools: [TOOL], max_tokens: 9 }).body).toEqual({
      max_tokens: 9,
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Is it wet?' }] },
        {
          role: 'assistant',
          content: ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'rain', input: { at: 1 } })),
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'yes' }] },
            { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'no' }] },
            { type: 'text', text: 'And this?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG.data } },
          ],
        },
      ],
      tools: [{ name: 'rain', description: 'Is it wet?', input_schema: { type: 'object' } }],
    })
  })

  test('for gemini', () => {
    const { contents, systemInstruction } = openAi('gemini', { messages: CONVERSATION }, { reasoning: 'none' }).body
    expect(systemInstruction).toEqual({ parts: [{ text: 'Be brief.' }] })
    expect(contents).toEqual([
      { role: 'user', parts: [{ text: 'Is it wet?' }] },
      { role: 'model', parts: ['a', 'b'].map((id) => ({ functionCall: { id, name: 'rain', args: { at: 1 } } })) },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'a', name: 'rain', response: { result: 'yes' } } },
          { functionResponse: { id: 'b', name: 'rain', response: { result: 'no' } } },
          { text: 'And this?' },
          { inlineData: { mimeType: 'image/png', data: PNG.data } },
        ],
      },
    ])
  })

  test('for converse, which wants the tools of the history declared', () => {
    const { messages, toolConfig } = openAi('converse', { messages: CONVERSATION }).body
    expect(toolConfig).toEqual({
      tools: [{ toolSpec: { name: 'rain', inputSchema: { json: { type: 'object', properties: {} } } } }],
    })
    expect(messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ toolUse: { toolUseId: 'a', name: 'rain', input: { at: 1 } } }, {}] },
      {
        role: 'user',
        content: [
          { toolResult: { toolUseId: 'a', content: [{ text: 'yes' }], status: 'success' } },
          { toolResult: { toolUseId: 'b' } },
          { text: 'And this?' },
          { image: { format: 'png', source: { bytes: PNG.data } } },
        ],
      },
    ])
  })

  test('from anthropic to openai: images of results follow, errors say so', () => {
    const { body } = translate('anthropic', 'openai', {
      max_tokens: 5,
      system: 'Be brief.',
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'a',
              is_error: true,
              content: [
                { type: 'text', text: 'dark' },
                { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
              ],
            },
          ],
        },
      ],
    })
    expect(body).toEqual({
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: 'Error: dark' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png' } }] },
      ],
      max_completion_tokens: 5,
    })
  })
})

test('gateway#55 a result answers the last call of its id, where ids come again in each turn', () => {
  const turn = (result: string): object[] => [
    { role: 'assistant', content: null, tool_calls: [call('call_0')] },
    { role: 'tool', tool_call_id: 'call_0', content: result },
  ]
  const messages = [{ role: 'user', content: 'hi' }, ...turn('first'), ...turn('second')]
  const told = JSON.stringify(openAi('anthropic', { messages }).body['messages'])
  expect([...told.matchAll(/first|second/g)].map(String)).toEqual(['first', 'second'])
})

test('gateway#55 a result that says nothing has no text that providers would refuse', () => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'a', content: '' },
  ]
  expect(openAi('anthropic', { messages }).body['messages']).toMatchObject([
    {},
    {},
    { content: [{ type: 'tool_result', tool_use_id: 'a', content: [] }] },
  ])
  expect(openAi('converse', { messages }).body['messages']).toMatchObject([
    {},
    {},
    { content: [{ toolResult: { toolUseId: 'a', content: [] } }] },
  ])
  expect(JSON.stringify(openAi('gemini', { messages }).body)).toContain('"response":{"result":""}')
})

test('gateway#57 an image is told by the type that every provider knows', () => {
  const content = [{ type: 'image_url', image_url: { url: 'data:image/JPG;base64,aGk=' } }]
  const sent = (to: 'anthropic' | 'gemini' | 'converse'): string =>
    JSON.stringify(openAi(to, { messages: [{ role: 'user', content }] }).body)
  expect(sent('anthropic')).toContain('"media_type":"image/jpeg"')
  expect(sent('gemini')).toContain('"mimeType":"image/jpeg"')
  expect(sent('converse')).toContain('"format":"jpeg"')
})

test.each([
  ['auto', { type: 'auto' }, { mode: 'AUTO' }, { auto: {} }],
  ['required', { type: 'any' }, { mode: 'ANY' }, { any: {} }],
  [
    { type: 'function', function: { name: 'rain' } },
    { type: 'tool', name: 'rain' },
    { mode: 'ANY', allowedFunctionNames: ['rain'] },
    { tool: { name: 'rain' } },
  ],
])('gateway#56 choice %j', (choice, anthropic, gemini, converse) => {
  const body = { tools: [TOOL], tool_choice: choice }
  expect(openAi('anthropic', body).body['tool_choice']).toEqual(anthropic)
  expect(openAi('gemini', body).body['toolConfig']).toEqual({ functionCallingConfig: gemini })
  expect(openAi('converse', body).body['toolConfig']).toMatchObject({ toolChoice: converse })
})

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

function answer(id: string): object {
  return { role: 'tool', tool_call_id: id, content: 'yes' }
}

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

test.each(['anthropic', 'converse'] as const)(
  'text of spaces, which models say before calls, is kept from %s',
  (to) => {
    const messages = [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: '\n\n', tool_calls: [call('a')] },
      answer('a'),
    ]
    expect(JSON.stringify(openAi(to, { messages }).body)).not.toContain('\\n')
  },
)

test('gateway#57 no two documents of a Converse request have the same name', () => {
  const file = (filename?: string): object => ({
    type: 'file',
    file: { file_data: 'data:application/pdf;base64,AAAA', filename },
  })
  const content = [file(), file(), file('a_b.pdf'), file('A-b.pdf'), { type: 'text', text: 'Compare.' }]
  const { messages } = openAi('converse', { messages: [{ role: 'user', content }] }).body
  expect(JSON.stringify(messages).match(/"name":"[^"]*"/g)).toEqual(
    ['document', 'document (2)', 'a-b', 'A-b (2)'].map((name) => `"name":"${name}"`),
  )
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

test('openai to the inner form and back keeps text, images, calls and results', () => {
  const text = fc.string({ minLength: 1 })
  const user = fc.oneof(
    text,
    fc.tuple(text, fc.constant(image())).map(([said, shown]) => [{ type: 'text', text: said }, shown]),
  )
  const args = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value))
  const turn = fc.record({ user, said: text, args: fc.array(args, { maxLength: 3 }), result: text })
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 4 }), (turns) => {
      const messages = turns.flatMap(({ user: content, said, args: all, result }, i) => [
        { role: 'user', content },
        {
          role: 'assistant',
          content: said,
          ...(all.length > 0 && { tool_calls: all.map((each, j) => call(`${i}.${j}`, each)) }),
        },
        ...all.map((_, j) => ({ role: 'tool', tool_call_id: `${i}.${j}`, content: result })),
      ])
      const back = openAi('openai', { messages }).body['messages']
      const form = (list: unknown): ChatRequest => readOpenAiRequest({ messages: list }, () => {})
      expect(form(back)).toEqual(form(messages))
    }),
  )
})
