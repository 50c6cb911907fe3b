import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, expect, test } from 'vitest'
import { startFakeModel, type FakeModel, type FakeOptions } from '../../support/fake-model/index.ts'
import { ANTHROPIC_KEY } from '../../support/fake-model/providers/anthropic.ts'
import { OPENAI_KEY } from '../../support/fake-model/providers/openai.ts'
import { MISTRAL_KEY } from '../../support/fake-model/providers/mistral.ts'
import { GROQ_KEY } from '../../support/fake-model/providers/groq.ts'
import { WEATHER, weatherTool } from './support.ts'

const running: FakeModel[] = []
afterEach(async () => void (await Promise.all(running.splice(0).map((fake) => fake.close()))))

async function start(options: FakeOptions): Promise<FakeModel> {
  const fake = await startFakeModel(options)
  running.push(fake)
  return fake
}

const KEYS: Partial<Record<string, string>> = { openai: OPENAI_KEY, mistral: MISTRAL_KEY, groq: GROQ_KEY }

async function startOpenAi(options: Partial<FakeOptions> = {}): Promise<{ fake: FakeModel; client: OpenAI }> {
  const fake = await start({ provider: 'openai', ...options })
  const baseURL = String(fake.credential['base_url'])
  return {
    fake,
    client: new OpenAI({ baseURL, apiKey: KEYS[fake.provider] ?? 'none', maxRetries: 0, logLevel: 'off' }),
  }
}

async function startAnthropic(options: Partial<FakeOptions> = {}): Promise<{ fake: FakeModel; client: Anthropic }> {
  const fake = await start({ provider: 'anthropic', ...options })
  return { fake, client: new Anthropic({ baseURL: fake.url, apiKey: ANTHROPIC_KEY, maxRetries: 0 }) }
}

const hello = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: 'Hello there' }] }
const hi = { model: 'claude-opus-4-6', max_tokens: 500, messages: [{ role: 'user' as const, content: 'Hello there' }] }

test('the official client talks to the fake openai: chat, stream, usage, tools, embeddings, models', async () => {
  const { fake, client } = await startOpenAi()
  const whole = await client.chat.completions.create(hello)
  expect(whole.choices[0]?.message.content).toBe('You said: Hello there')
  expect(whole._request_id).toBe('req_fake1')
  const stream = client.chat.completions.stream({ ...hello, stream_options: { include_usage: true } })
  const streamed = await stream.finalChatCompletion()
  expect(streamed.choices[0]?.message.content).toBe('You said: Hello there')
  expect(streamed.usage).toEqual(whole.usage)
  expect(fake.reported).toMatchObject({ answers: 2, input: 2 * (whole.usage?.prompt_tokens ?? 0) })

  fake.setScript({ calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')] })
  const called = await client.chat.completions.create({ ...hello, tools: [weatherTool] })
  const calls = called.choices[0]?.message.tool_calls ?? []
  expect(calls).toHaveLength(2)
  const answered = await client.chat.completions.create({
    ...hello,
    tools: [weatherTool],
    messages: [
      ...hello.messages,
      { role: 'assistant', tool_calls: calls },
      ...calls.map(({ id }, i) => ({ role: 'tool' as const, tool_call_id: id, content: `result ${i}` })),
    ],
  })
  expect(answered.choices[0]?.message.content).toBe('The tools say: result 0; result 1')

  const floats = await client.embeddings.create({ model: 'e', input: ['a b', 'c'], encoding_format: 'float' })
  const packed = await client.embeddings.create({ model: 'e', input: ['a b', 'c'], encoding_format: 'base64' })
  expect(Buffer.from(String(packed.data[0]?.embedding), 'base64').readFloatLE(0)).toBe(floats.data[0]?.embedding[0])
  expect((await client.models.list()).data.map(({ id }) => id)).toContain('gpt-4o')
})

test('the official client reads responses, whole and as a stream', async () => {
  const { client } = await startOpenAi({ script: { text: 'One two three' } })
  const whole = await client.responses.create({ model: 'gpt-5', input: 'Count' })
  expect(whole.output_text).toBe('One two three')
  const stream = client.responses.stream({ model: 'gpt-5', input: 'Count' })
  expect((await stream.finalResponse()).output_text).toBe('One two three')
})

test('the fake openai refuses in the provider’s words', async () => {
  const { fake, client } = await startOpenAi()
  await expect(
    new OpenAI({ baseURL: `${fake.url}/v1`, apiKey: 'sk-wrong', maxRetries: 0 }).models.list(),
  ).rejects.toThrow(OpenAI.AuthenticationError)
  await expect(client.chat.completions.create({ ...hello, model: 'missing' })).rejects.toThrow(OpenAI.NotFoundError)
  await expect(client.chat.completions.create({ ...hello, frobnicate: 1 } as never)).rejects.toThrow(
    'Unrecognized request',
  )
  await expect(
    client.chat.completions.create({ ...hello, messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }),
  ).rejects.toMatchObject({ status: 400, param: 'messages.[0].role', type: 'invalid_request_error' })
  await expect(client.chat.completions.create({ ...hello, model: 'gpt-5', max_tokens: 5 })).rejects.toMatchObject({
    code: 'unsupported_parameter',
  })
  fake.setScript([
    { call: 1, error: 'rate', retryAfter: 2 },
    { call: 2, status: 500, message: 'Boom', echoKey: true },
  ])
  await expect(client.chat.completions.create(hello)).rejects.toMatchObject({
    status: 429,
    code: 'rate_limit_exceeded',
  })
  await expect(client.chat.completions.create(hello)).rejects.toThrow(`Boom: ${OPENAI_KEY}`)
})

test('scripts spoil streams: an error event, a missing end, broken JSON, a cut, silence', async () => {
  const { fake, client } = await startOpenAi()
  const collect = async (script: Parameters<FakeModel['setScript']>[0]): Promise<string> => {
    fake.setScript(script)
    let text = ''
    for await (const chunk of await client.chat.completions.create({ ...hello, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? ''
    }
    return text
  }
  await expect(collect({ errorAfter: 0 })).rejects.toThrow(OpenAI.APIError)
  await expect(collect({ errorAfter: 2, message: 'tripped' })).rejects.toThrow('tripped')
  expect(await collect({ noStop: true })).toBe('You said: Hello there')
  await expect(collect({ malformed: 'json' })).rejects.toThrow(SyntaxError)
  expect(await collect({ cut: 3 })).toBe('You said: ')
  await expect(collect({ reset: 2 })).rejects.toThrow('terminated')
  expect(await collect({ chunk: 1, newline: '\r\n', bom: true, comments: true })).toBe('You said: Hello there')
  expect(await collect({ text: '😀 ü', chunk: 1 })).toBe('😀 ü')
  expect(await collect({ text: 'a', repeat: 300, paceMs: 0 })).toBe('a'.repeat(300))

  fake.setScript({ silent: 2 })
  const abort = new AbortController()
  const stream = await client.chat.completions.create({ ...hello, stream: true }, { signal: abort.signal })
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) abort.abort()
  const left = await fake.waitForClosed()
  expect(left).toMatchObject({ isDone: false, sentFrames: 2 })
})

test('a script follows call numbers, markers and counts', async () => {
  const { client } = await startOpenAi({
    script: [
      { call: 2, text: 'second' },
      { marker: 'parrot', text: 'squawk', times: 1 },
      { marker: 'gpt-x', text: 'by model' },
    ],
  })
  const ask = async (content: string, model = 'gpt-4o'): Promise<string | null | undefined> =>
    (await client.chat.completions.create({ model, messages: [{ role: 'user', content }] })).choices[0]?.message.content
  expect(await ask('a parrot')).toBe('squawk')
  expect(await ask('a parrot')).toBe('second')
  expect(await ask('a parrot')).toBe('You said: a parrot')
  expect(await ask('Hi', 'gpt-x')).toBe('by model')
})

test('a structured answer fits its schema; open schemas are refused', async () => {
  const { client } = await startOpenAi()
  const format = (additionalProperties: boolean): OpenAI.ResponseFormatJSONSchema => ({
    type: 'json_schema',
    json_schema: {
      name: 'city',
      strict: true,
      schema: {
        type: 'object',
        properties: { city: { type: 'string' }, size: { type: 'integer' } },
        additionalProperties,
      },
    },
  })
  const answer = await client.chat.completions.create({ ...hello, response_format: format(false) })
  expect(JSON.parse(answer.choices[0]?.message.content ?? '')).toEqual({ city: 'text', size: 1 })
  await expect(client.chat.completions.create({ ...hello, response_format: format(true) })).rejects.toThrow(
    'additionalProperties',
  )
})

test('the fake mistral takes only its own fields and call ids, and tells thoughts in chunks', async () => {
  const { fake, client } = await startOpenAi({ provider: 'mistral', script: { reasoning: 'Hm, well.' } })
  const refused = client.chat.completions.create({ ...hello, max_completion_tokens: 5 })
  await expect(refused).rejects.toMatchObject({ status: 422 })
  const thought = await client.chat.completions.create(hello)
  expect(thought.choices[0]?.message.content).toEqual([
    { type: 'thinking', thinking: [{ type: 'text', text: 'Hm, well.' }] },
    { type: 'text', text: 'You said: Hello there' },
  ])
  const loop = (id: string): Promise<unknown> =>
    client.chat.completions.create({
      ...hello,
      messages: [
        ...hello.messages,
        { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: id, content: 'x' },
      ],
    })
  await expect(loop('call_1')).rejects.toMatchObject({ status: 400 })
  await loop('abcDEF123')
  fake.setScript([])
  let usage: unknown
  for await (const chunk of await client.chat.completions.create({ ...hello, stream: true })) usage ??= chunk.usage
  expect(usage).toMatchObject({ completion_tokens: 6 })
})

test('the fake groq tells usage in x_groq and refuses what it does not do', async () => {
  const { client } = await startOpenAi({ provider: 'groq' })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of await client.chat.completions.create({ ...hello, stream: true })) chunks.push(chunk)
  expect(chunks.at(-1)).toMatchObject({ x_groq: { usage: { completion_tokens: 6 } } })
  await expect(client.chat.completions.create({ ...hello, logprobs: true })).rejects.toThrow(
    '`logprobs` is not supported',
  )
  await expect(client.embeddings.create({ model: 'e', input: 'x' })).rejects.toThrow(OpenAI.NotFoundError)
})

test('the official client talks to the fake anthropic: messages, stream, thinking, tools, counting, models', async () => {
  const { client } = await startAnthropic({
    script: { calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')], reasoning: 'I should look.' },
  })
  const thinking = { type: 'adaptive' as const }
  const tools = [{ name: 'weather', input_schema: WEATHER.schema }]
  const stream = client.messages.stream({ ...hi, thinking, tools })
  const message = await stream.finalMessage()
  expect(message.content.map(({ type }) => type)).toEqual(['thinking', 'tool_use', 'tool_use'])
  expect(message.stop_reason).toBe('tool_use')
  expect(stream.request_id).toBe('req_fake00000001')
  const results = message.content.flatMap((block) =>
    block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'sunny' }] : [],
  )
  const second = (content: Anthropic.ContentBlockParam[]): Promise<Anthropic.Message> =>
    client.messages.create({
      ...hi,
      thinking,
      tools,
      messages: [...hi.messages, { role: 'assistant', content }, { role: 'user', content: results }],
    })
  const given = message.content as Anthropic.ContentBlockParam[]
  expect((await second(given)).content).toContainEqual(expect.objectContaining({ text: 'The tools say: sunny; sunny' }))
  await expect(second(given.slice(1))).rejects.toThrow('Expected `thinking`')
  await expect(second([{ type: 'thinking', thinking: 'Made up.', signature: 'x' }, ...given.slice(1)])).rejects.toThrow(
    'Invalid `signature`',
  )
  expect(await client.messages.countTokens({ model: hi.model, messages: hi.messages })).toEqual({ input_tokens: 6 })
  expect((await client.models.list()).data[0]).toMatchObject({ id: 'claude-opus-4-6', type: 'model' })
})

test('the fake anthropic refuses what the provider would', async () => {
  const { fake, client } = await startAnthropic()
  const post = async (body: unknown, headers: Record<string, string> = {}): Promise<unknown> => {
    const response = await fetch(`${fake.url}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'x-api-key': ANTHROPIC_KEY, 'anthropic-version': '2023-06-01', ...headers },
    })
    return `${response.status} ${String(Object(await response.json()).error?.message)}`
  }
  expect(await post({ ...hi, temperature: 0.5 })).toMatch(/^200/)
  expect(await post({ ...hi, temperature: 0.5 }, { 'anthropic-version': '2026-10-21' })).toBe(
    '400 temperature: Extra inputs are not permitted',
  )
  expect(await post({ ...hi, max_tokens: undefined })).toBe('400 max_tokens: Field required')
  expect(await post(hi, { 'anthropic-version': 'x' })).toMatch(/^400 anthropic-version/)
  expect(await post(hi, { 'x-api-key': 'no' })).toBe('401 invalid x-api-key')
  const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
  expect(
    await post({
      ...hi,
      messages: [...hi.messages, { role: 'assistant', content: [use] }, { role: 'user', content: 'x' }],
    }),
  ).toMatch(/^400 messages\.1: `tool_use` ids were found without `tool_result`/)
  fake.setScript([
    { call: 1, error: 'overloaded' },
    { call: 2, errorAfter: 1 },
  ])
  await expect(client.messages.create(hi)).rejects.toMatchObject({ status: 529, type: 'overloaded_error' })
  await expect(client.messages.stream(hi).finalMessage()).rejects.toThrow(Anthropic.APIError)
})

test('the control routes show what came and change the script', async () => {
  const { fake, client } = await startOpenAi()
  await fetch(`${fake.url}/__control/script`, { method: 'POST', body: JSON.stringify({ text: 'remote' }) })
  expect((await client.chat.completions.create(hello)).choices[0]?.message.content).toBe('remote')
  const { received, reported } = Object(await (await fetch(`${fake.url}/__control/received`)).json())
  expect(received).toMatchObject([{ path: '/v1/chat/completions', body: hello, status: 200 }])
  expect(reported).toMatchObject({ answers: 1 })
})
