import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import { node, output, run } from '../support.ts'
import { attributes, recorder, type Recorded } from './recorder.ts'

const KEY = 'key-of-the-provider'
const services = { apiKeys: { openai: KEY, anthropic: KEY, gemini: KEY } }

const ask = (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  run(`node ai n {\n${attributes({ prompt: 'Say hi', ...values })}\n}`, { services, ...options })

const failure = async (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  node(await ask(values, options), 'n')?.error

const bodyOf = (request: Recorded | undefined): unknown => JSON.parse(request?.body ?? 'null')

const openaiReply = (message: object, finish = 'stop') => ({
  choices: [{ finish_reason: finish, message: { role: 'assistant', content: null, ...message } }],
  usage: { prompt_tokens: 7, completion_tokens: 3 },
})

describe('providers', () => {
  test('runbook#96 openai: request and output', async () => {
    const { url, requests } = await recorder(() => ({ body: openaiReply({ content: 'hi' }) }))
    const report = await ask({ baseUrl: `${url}/v1`, systemPrompt: 'Be brief', temperature: 0.5, model: 'm1' })
    expect(requests[0]).toMatchObject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    expect(bodyOf(requests[0])).toEqual({
      model: 'm1',
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'Say hi' },
      ],
      temperature: 0.5,
      max_completion_tokens: 1000,
    })
    expect(output(report, 'n')).toEqual({
      response: 'hi',
      provider: 'openai',
      model: 'm1',
      finishReason: 'stop',
      usage: { inputTokens: 7, outputTokens: 3 },
      toolCalls: [],
      raw: openaiReply({ content: 'hi' }),
    })
  })

  test('runbook#96 openai-compatible: own base URL, never the key of another', async () => {
    const { url, requests } = await recorder(() => ({ body: openaiReply({ content: 'hi' }, 'length') }))
    const report = await ask({ provider: 'openai-compatible', baseUrl: url, model: 'm', maxTokens: 5 })
    expect(bodyOf(requests[0])).toEqual({ model: 'm', messages: [{ role: 'user', content: 'Say hi' }], max_tokens: 5 })
    expect(requests[0]?.headers).not.toHaveProperty('authorization')
    expect(output(report, 'n')).toMatchObject({ finishReason: 'length' })
    expect((await failure({ provider: 'openai-compatible', model: 'm' }))?.code).toBe('config_invalid')
  })

  test('runbook#96 anthropic', async () => {
    const { url, requests } = await recorder(() => ({
      body: {
        content: [{ type: 'text', text: 'hi' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 4, output_tokens: 2 },
      },
    }))
    const report = await ask({ provider: 'anthropic', baseUrl: url, systemPrompt: 'Be brief' })
    expect(requests[0]).toMatchObject({
      url: '/messages',
      headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' },
    })
    expect(bodyOf(requests[0])).toEqual({
      model: 'claude-haiku-4-5',
      max_tokens: 1000,
      system: 'Be brief',
      messages: [{ role: 'user', content: 'Say hi' }],
    })
    expect(output(report, 'n')).toMatchObject({
      response: 'hi',
      finishReason: 'stop',
      usage: { inputTokens: 4, outputTokens: 2 },
    })
  })

  test('runbook#96 gemini: the key is a header, not part of the URL', async () => {
    const { url, requests } = await recorder(() => ({
      body: {
        candidates: [{ content: { parts: [{ text: '{"a": 1}' }] }, finishReason: 'STOP' }],
        usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 2 },
      },
    }))
    const report = await ask({ provider: 'gemini', baseUrl: url, model: 'g', responseFormat: 'json' })
    expect(requests[0]).toMatchObject({ url: '/models/g:generateContent', headers: { 'x-goog-api-key': KEY } })
    expect(bodyOf(requests[0])).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Say hi' }] }],
      generationConfig: { maxOutputTokens: 1000, responseMimeType: 'application/json' },
    })
    expect(output(report, 'n')).toMatchObject({ json: { a: 1 }, finishReason: 'stop' })
  })

  test('runbook#96 ollama needs no key', async () => {
    const { url, requests } = await recorder(() => ({
      body: { message: { role: 'assistant', content: 'hi' }, done_reason: 'stop', prompt_eval_count: 4, eval_count: 2 },
    }))
    const report = await ask({ provider: 'ollama', ollamaUrl: url, temperature: 0 }, { services: {} })
    expect(requests[0]?.url).toBe('/api/chat')
    expect(bodyOf(requests[0])).toEqual({
      model: 'llama3.2',
      stream: false,
      messages: [{ role: 'user', content: 'Say hi' }],
      options: { temperature: 0, num_predict: 1000 },
    })
    expect(output(report, 'n')).toMatchObject({ response: 'hi', usage: { inputTokens: 4, outputTokens: 2 } })
    expect((await failure({}, { services: {} }))?.code).toBe('config_invalid')
  })
})

describe('JSON, files, tools', () => {
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }

  test('runbook#96 JSON is parsed and checked against the schema', async () => {
    const answers = ['{"n": 1}', '```json\n{"n": 2}\n```', '{"n": "x"}', 'not json']
    const { url, requests } = await recorder((_, count) => ({ body: openaiReply({ content: answers[count - 1] }) }))
    expect(output(await ask({ baseUrl: url, schema }), 'n')).toMatchObject({ json: { n: 1 } })
    expect(bodyOf(requests[0])).toMatchObject({
      response_format: { type: 'json_schema', json_schema: { name: 'response', schema } },
    })
    expect(output(await ask({ baseUrl: url, schema }), 'n')).toMatchObject({ json: { n: 2 } })
    expect((await failure({ baseUrl: url, schema }))?.code).toBe('data_invalid')
    expect((await failure({ baseUrl: url, responseFormat: 'json' }))?.code).toBe('data_invalid')
  })

  test('runbook#96 a text file extends the prompt, an image goes beside it', async () => {
    const { url, requests } = await recorder(() => ({ body: openaiReply({ content: 'ok' }) }))
    const directory = mkdtempSync(join(tmpdir(), 'mem-ai-'))
    const png = Buffer.from('89504e470d0a1a0a', 'hex')
    writeFileSync(join(directory, 'a.txt'), 'file text')
    writeFileSync(join(directory, 'a.png'), png)
    const guard = { allowPaths: [directory] }
    await ask({ baseUrl: url, file: join(directory, 'a.txt') }, { guard })
    await ask({ baseUrl: url, file: join(directory, 'a.png') }, { guard })
    expect(requests.map(bodyOf)).toMatchObject([
      { messages: [{ content: 'Say hi\n\nfile text' }] },
      {
        messages: [
          {
            content: [
              { type: 'text', text: 'Say hi' },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
            ],
          },
        ],
      },
    ])
  })

  const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city": "Bern"}' } }

  test('runbook#96 tool loop: calls with a url are made, the limit ends it', async () => {
    const weather = await recorder(() => ({ body: { celsius: 7 } }))
    const model = await recorder((_, count) => ({
      body: count === 2 ? openaiReply({ content: 'cold' }) : openaiReply({ tool_calls: [call] }, 'tool_calls'),
    }))
    const tool = { name: 'weather', description: 'now', url: `${weather.url}/now`, headers: { 'X-Unit': 'c' } }
    const report = await ask({ baseUrl: model.url, tools: [tool] })
    expect(output(report, 'n')).toMatchObject({ response: 'cold', usage: { inputTokens: 14, outputTokens: 6 } })
    expect(weather.requests[0]).toMatchObject({
      method: 'POST',
      url: '/now',
      headers: { 'x-unit': 'c' },
      body: '{"city":"Bern"}',
    })
    expect(bodyOf(model.requests[1])).toMatchObject({
      tools: [{ type: 'function', function: { name: 'weather', description: 'now' } }],
      messages: [
        { role: 'user' },
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: '{"celsius":7}' },
      ],
    })
    expect((await failure({ baseUrl: model.url, tools: [tool], maxToolIterations: 2 }))?.code).toBe('ai_tool_limit')
    const open = await ask({ baseUrl: model.url, tools: [{ name: 'weather' }] })
    expect(output(open, 'n')).toMatchObject({
      finishReason: 'tool_calls',
      toolCalls: [{ id: 'c1', name: 'weather', arguments: { city: 'Bern' } }],
    })
  })

  test('runbook#96 tool calls of the other providers', async () => {
    const city = { city: 'Bern' }
    const replies: Record<string, [object, object]> = {
      anthropic: [
        { content: [{ type: 'tool_use', id: 't1', name: 'weather', input: city }], stop_reason: 'tool_use' },
        { content: [{ type: 'text', text: 'cold' }], stop_reason: 'end_turn' },
      ],
      gemini: [
        { candidates: [{ content: { parts: [{ functionCall: { name: 'weather', args: city } }] } }] },
        { candidates: [{ content: { parts: [{ text: 'cold' }] } }] },
      ],
      ollama: [
        { message: { role: 'assistant', tool_calls: [{ function: { name: 'weather', arguments: city } }] } },
        { message: { role: 'assistant', content: 'cold' } },
      ],
    }
    const weather = await recorder(() => ({ body: 'seven' }))
    const results: Record<string, unknown> = {
      anthropic: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'seven' }] },
      gemini: { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { result: 'seven' } } }] },
      ollama: { role: 'tool', tool_name: 'weather', content: 'seven' },
    }
    for (const [provider, answers] of Object.entries(replies)) {
      const model = await recorder((_, count) => ({ body: answers[count === 1 ? 0 : 1] }))
      const report = await ask({ provider, baseUrl: model.url, tools: [{ name: 'weather', url: weather.url }] })
      expect([provider, output(report, 'n')]).toMatchObject([provider, { response: 'cold' }])
      const { messages, contents } = bodyOf(model.requests[1]) as { messages?: unknown[]; contents?: unknown[] }
      expect((messages ?? contents)?.at(-1)).toEqual(results[provider])
    }
    expect(weather.requests.map(({ body }) => body)).toEqual(Array(3).fill('{"city":"Bern"}'))
  })
})

describe('failures', () => {
  test('runbook#96 429, 401, 500, refusal, another form; the key is nowhere', async () => {
    const { url } = await recorder(({ url: path, headers }) => {
      const status = Number(path.split('/')[1])
      if (status !== 200) return { status, body: { error: `key ${headers.authorization}` } }
      return { body: path.includes('refusal') ? openaiReply({ refusal: 'no' }) : { unknown: true } }
    })
    expect((await failure({ baseUrl: `${url}/429` }))?.code).toBe('rate_limited')
    expect((await failure({ baseUrl: `${url}/401` }))?.code).toBe('auth_failed')
    expect(await failure({ baseUrl: `${url}/500` })).toMatchObject({ code: 'http_status', class: 'server_error' })
    expect((await failure({ baseUrl: `${url}/200/refusal` }))?.code).toBe('ai_refused')
    expect((await failure({ baseUrl: `${url}/200/other` }))?.code).toBe('data_invalid')
    expect(JSON.stringify(await ask({ baseUrl: `${url}/401` }))).not.toContain(KEY)
  })
})
