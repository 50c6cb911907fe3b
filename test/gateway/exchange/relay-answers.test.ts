import { describe, expect, test } from 'vitest'
import { candidateOf, chat, faultOf, makeExchange, messages, requestOf } from './support.ts'

const openai = candidateOf('openai')
const spaced = (json: object): Buffer => Buffer.from(` ${JSON.stringify(json, null, 3)}\n`)

test('gateway#49 whole answers are the same bytes, and tell what they cost', () => {
  const completion = spaced({
    id: 'c',
    model: 'gpt-x',
    unknown: 1.5,
    choices: [{ message: { role: 'assistant', content: 'said "usage": é' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 1 } },
  })
  const answer = chat(openai).answer(completion)
  expect(answer.body).toBe(completion)
  expect(answer.facts).toEqual({
    usage: { input: 9, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, output: 4, reasoning: 1 },
    finishReason: 'stop',
    responseModel: 'gpt-x',
    responseId: 'c',
    textBytes: 0,
  })
  const message = spaced({
    model: 'claude-x',
    content: [{ type: 'text', text: 'é' }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 9, cache_creation_input_tokens: 5, output_tokens: 4 },
  })
  const said = messages(candidateOf('anthropic')).answer(message)
  expect(said.body).toBe(message)
  expect(said.facts).toMatchObject({
    usage: { input: 14, cacheWrite: 5, output: 4 },
    finishReason: 'tool_calls',
    textBytes: 2,
  })
  const response = spaced({
    model: 'gpt-x',
    status: 'incomplete',
    error: null,
    incomplete_details: { reason: 'max_output_tokens' },
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'é' }] }],
    usage: { input_tokens: 9, output_tokens: 4 },
  })
  const responded = makeExchange(requestOf('responses', { model: 'a', input: 'hi' }), openai).answer(response)
  expect(responded.body).toBe(response)
  expect(responded.facts).toMatchObject({ usage: { input: 9, output: 4 }, finishReason: 'length', textBytes: 2 })
})

test('gateway#78 where no usage is told, what all choices say is counted', () => {
  const choices = ['four', 'eight'].map((content, index) => ({ index, message: { role: 'assistant', content } }))
  expect(chat(openai).answer(spaced({ id: 'c', model: 'gpt-x', choices })).facts.textBytes).toBe(9)
})

test('gateway#31 an answer without a message is none: another candidate may have one', () => {
  for (const choices of [[], [{}], [{ message: null, finish_reason: 'stop' }]]) {
    expect(faultOf(() => chat(openai).answer(spaced({ choices })))).toMatchObject({ class: 'transient' })
  }
})

test('gateway#83 what an answer without a message reported is told: its tokens count', () => {
  const usage = { prompt_tokens: 9, completion_tokens: 4 }
  const told = { usage: { input: 9, output: 4 }, responseModel: 'gpt-x' }
  for (const fields of [{ choices: [] }, { error: { message: 'no', code: 'server_error' } }]) {
    const given = spaced({ model: 'gpt-x', ...fields, usage })
    expect(faultOf(() => chat(openai).answer(given))).toMatchObject({ class: 'transient', facts: told })
  }
  const message = spaced({ model: 'claude-x', usage: { input_tokens: 9, output_tokens: 4 } })
  expect(faultOf(() => messages(candidateOf('anthropic')).answer(message))).toMatchObject({
    facts: { usage: { input: 9, output: 4 }, responseModel: 'claude-x' },
  })
})

test('usage that is absent or null is none', () => {
  const answered = (fields: object) =>
    chat(openai).answer(spaced({ choices: [{ message: { content: 'x' } }], ...fields })).facts.usage
  expect(answered({})).toBeUndefined()
  expect(answered({ usage: null })).toBeUndefined()
  expect(answered({ x_groq: { usage: { prompt_tokens: 3, completion_tokens: 1 } } })).toMatchObject({
    input: 3,
    output: 1,
  })
})

describe('gateway#31 a 200 that is no answer is transient', () => {
  test.each(['', '<html>', '[]', '{}', '{"choices":[]}', '{"choices":[{}]', '"x"'])('%j', (text) => {
    expect(faultOf(() => chat(openai).answer(Buffer.from(text)))).toMatchObject({
      class: 'transient',
      error: { code: 'upstream_invalid_response' },
    })
  })

  test('an error in it is what it says', () => {
    const error = { error: { message: 'no more', code: 'insufficient_quota' } }
    expect(faultOf(() => chat(openai).answer(spaced(error)))).toMatchObject({ class: 'auth', message: 'no more' })
    const failed = { status: 'failed', output: [], error: { code: 'rate_limit_exceeded', message: 'slow' } }
    const response = makeExchange(requestOf('responses', { model: 'a', input: 'hi' }), openai)
    expect(faultOf(() => response.answer(spaced(failed)))).toMatchObject({ class: 'rate' })
  })
})
