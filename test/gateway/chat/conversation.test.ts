import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../src/gateway/chat/form.ts'
import { readOpenAiRequest } from '../../../src/gateway/chat/openai/read-request.ts'
import { answer, call, CONVERSATION, image, openAi, PNG, TOOL, translate } from './support.ts'

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
