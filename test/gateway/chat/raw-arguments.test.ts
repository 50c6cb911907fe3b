import { describe, expect, test } from 'vitest'
import { AnthropicReader } from '../../../src/gateway/chat/anthropic/read-answer.ts'
import { writeAnthropicAnswer } from '../../../src/gateway/chat/anthropic/write-answer.ts'
import { ConverseReader } from '../../../src/gateway/chat/converse/read-answer.ts'
import { AnswerError, type ChatEvent, type Said } from '../../../src/gateway/chat/events.ts'
import { GeminiReader } from '../../../src/gateway/chat/gemini/read-answer.ts'
import { OpenAiReader } from '../../../src/gateway/chat/openai/read-answer.ts'
import { RawJson, textsAt, writeJson } from '../../../src/gateway/chat/raw-json.ts'
import { translateText } from './support.ts'

/** What parsing would change: digits, a number without end, a name that stands twice, one of every object, spaces. */
const RAW = '{"id":9007199254740993, "x":1e400,"x":[1.10,{"__proto__":"é \\ud83c\\udf27"}],"y":"}\\""}'
const HEAD = { id: 'a', model: 'm' }

describe('gateway#55 arguments of calls in the history are sent as they came', () => {
  const calls = ['c0', 'c1'].map((id) => ({ id, function: { name: 'f', arguments: id === 'c0' ? RAW : '' } }))
  const openAi = JSON.stringify({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'input', tool_calls: calls },
    ],
  })
  const anthropic = `{ "max_tokens": 9, "messages": [
    {"role": "system", "content": [{"type": "text", "text": "s"}]},
    {"role": "system"},
    {"role": "user", "content": "say \\"input\\""},
    {"role": "assistant", "content": [{"type": "text", "text": "x", "input": {"not": "this"}},
      {"type": "tool_use", "id": "c0", "name": "f", "in\\u0070ut": ${RAW}}, {"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}
  ] }`

  test.each([
    ['openai', 'anthropic', openAi],
    ['openai', 'gemini', openAi],
    ['openai', 'converse', openAi],
    ['anthropic', 'openai', anthropic],
    ['anthropic', 'gemini', anthropic],
    ['anthropic', 'converse', anthropic],
  ] as const)('from %s to %s', (from, to, source) => {
    const { text } = translateText(from, to, source)
    const name = { anthropic: 'input', gemini: 'args', converse: 'input', openai: 'arguments' }[to]
    const said = (raw: string): string => `"${name}":${to === 'openai' ? JSON.stringify(raw) : raw}`
    expect(text).toContain(said(RAW))
    expect(text.indexOf(said('{}'))).toBeGreaterThan(text.indexOf(said(RAW)))
    expect(text).not.toContain('"not"')
  })
})

describe('gateway#55 arguments of calls in a whole answer are told as they came', () => {
  const saidOf = (events: readonly ChatEvent[]): Said[] =>
    events.flatMap((event) => (event.kind === 'error' ? [] : event))
  const argumentsOf = (events: readonly ChatEvent[]): string[] =>
    events.flatMap((event) => (event.kind === 'arguments' ? [event.text] : []))

  test.each([
    [
      'anthropic',
      `{"content":[{"type":"text","text":"\\"input\\""},{"type":"tool_use","input": ${RAW} },{"type":"tool_use","id":"x"}]}`,
      (body: string) => new AnthropicReader().readMessage(body),
    ],
    [
      'anthropic, at the beginning of a block',
      `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":${RAW}}}`,
      (body: string) => new AnthropicReader().read(body),
    ],
    [
      'gemini',
      ` {"candidates":[{"content":{"parts":[{"text":"args"},{"functionCall":{"args":${RAW},"name":"f"}},{"functionCall":{"name":"g","args":null}}]}},{"content":{"parts":[{"functionCall":{"name":"h","args":{}}}]}}]}`,
      (body: string) => new GeminiReader(String).read(body),
    ],
    [
      'converse',
      `{"output":{"message":{"content":[{"text":"x"},{"toolUse":{"name":"f","input":${RAW}}},{"toolUse":{"name":"g","input":{}}}]}}}`,
      (body: string) => new ConverseReader().readAnswer(body),
    ],
  ])('%s', (_, body, read) => {
    expect(argumentsOf(read(body))[0]).toBe(RAW)
    expect(argumentsOf(read(body)).slice(1)).toEqual(
      argumentsOf(read(body))
        .slice(1)
        .map(() => '{}'),
    )
  })

  test('to anthropic', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: ` ${RAW}\n` } }
    const answer = JSON.stringify({ choices: [{ message: { tool_calls: [call] }, finish_reason: 'tool_calls' }] })
    const events = saidOf(new OpenAiReader(String).read(answer))
    expect(writeJson(writeAnthropicAnswer(HEAD, events))).toContain(`"input": ${RAW}\n}`)
  })

  test.each(['[1]', '1', '{"a":1', '{}{}', '{"a":1},"more":{}'])('%s is no object, and put in nowhere', (text) => {
    const events: Said[] = [
      { kind: 'call', index: 0, id: 'c', name: 'f' },
      { kind: 'arguments', index: 0, text },
    ]
    expect(() => writeAnthropicAnswer(HEAD, events)).toThrow(AnswerError)
  })

  test('what is too deep to be looked into is told all the same', () => {
    const deep = `{"a":${'['.repeat(200)}${']'.repeat(200)}}`
    const body = `{"content":[{"type":"tool_use","id":"x","name":"f","input":${deep}}]}`
    expect(argumentsOf(new AnthropicReader().readMessage(body))).toEqual([deep])
  })
})

test('JSON is written as JSON.stringify does, but for what is raw', () => {
  const plain = { a: [undefined, null, 1, 'é "\n', { b: undefined, c: {} }], d: undefined, 'e"': true, f: [] }
  expect(writeJson(plain)).toBe(JSON.stringify(plain))
  expect(writeJson({ a: [new RawJson('1.0')], b: new RawJson('"\ud800"') })).toBe('{"a":[1.0],"b":"\\ud800"}')
  expect(JSON.stringify(new RawJson('1.0'))).toBe('1')
})

test('texts stand at a path, one for each item', () => {
  const json = '{"a":[{"b": 1.0 },{"c":2},3,{"b":[ ]}],"a":[{"b":{"x":1}},{}]}'
  expect(textsAt(json, ['a', '*', 'b'])).toEqual(['{"x":1}', undefined])
  expect(textsAt(json, ['c', '*', 'b'])).toEqual([])
  expect(textsAt(Buffer.from(json), ['b'])).toEqual([undefined])
})
