import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import {
  describeGateway,
  EMBEDDING_KINDS,
  KINDS,
  openAi,
  SERVED_NAMES,
  upstreamName,
  usageOf,
  WEATHER,
  weatherTool,
} from './support.ts'
import { embed } from '../../support/fake-model/index.ts'

const hello = [{ role: 'user' as const, content: 'Hello there' }]
const city = z.object({ city: z.string(), people: z.int() })

describeGateway('the openai client', (gateway) => {
  describe.each(KINDS)('%s', (kind) => {
    const model = `via-${kind}`

    test('gateway#105 chat and stream, with usage and request ids', async () => {
      const client = openAi(gateway())
      const whole = await client.chat.completions.create({ model, messages: hello })
      expect(whole.choices[0]).toMatchObject({ message: { content: 'You said: Hello there' }, finish_reason: 'stop' })
      expect(whole.usage?.completion_tokens).toBe(6)
      expect(whole._request_id).toMatch(/^\S+$/)
      const stream = client.chat.completions.stream({ model, messages: hello, stream_options: { include_usage: true } })
      const streamed = await stream.finalChatCompletion()
      expect(streamed.choices[0]).toMatchObject({
        message: { content: 'You said: Hello there' },
        finish_reason: 'stop',
      })
      expect(streamed.usage).toMatchObject({ prompt_tokens: whole.usage?.prompt_tokens, completion_tokens: 6 })
      for (const { headers } of gateway().received(kind)) {
        expect(JSON.stringify(headers)).not.toContain(gateway().key)
        expect(headers['user-agent']).toMatch(/^mem-gateway\//)
      }
    })

    test('gateway#50 usage that nobody asked for stays away', async () => {
      const told: unknown[] = []
      const empty: unknown[] = []
      const stream = await openAi(gateway()).chat.completions.create({ model, messages: hello, stream: true })
      for await (const { choices, usage } of stream) {
        if (choices.length === 0) empty.push(usage)
        if (usage) told.push(choices[0]?.finish_reason)
      }
      // Azure begins with a frame about the prompt, and Mistral's last chunk tells of tokens whatever is asked.
      expect(empty).toEqual(kind === 'azure-openai' ? [undefined] : [])
      expect(told).toEqual(kind === 'mistral' ? ['stop'] : [])
    })

    test('gateway#55 #105 parallel calls and their results', async () => {
      const client = openAi(gateway())
      gateway()
        .fake(kind)
        .setScript({ calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')] })
      const ask = { model, tools: [weatherTool], messages: hello }
      const whole = await client.chat.completions.create(ask)
      const streamed = await client.chat.completions.stream(ask).finalChatCompletion()
      for (const { choices } of [whole, streamed]) {
        expect(choices[0]?.finish_reason).toBe('tool_calls')
        const calls = (choices[0]?.message.tool_calls ?? []) as OpenAI.ChatCompletionMessageFunctionToolCall[]
        expect(calls.map((call) => JSON.parse(call.function.arguments))).toEqual([{ city: 'Rome' }, { city: 'Oslo' }])
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
        const answered = await client.chat.completions.create({
          ...ask,
          messages: [
            ...hello,
            { role: 'assistant', tool_calls: calls },
            ...calls.map(({ id }, i) => ({ role: 'tool' as const, tool_call_id: id, content: `weather ${i}` })),
          ],
        })
        expect(answered.choices[0]?.message.content).toBe('The tools say: weather 0; weather 1')
      }
    })

    test('gateway#56 a tool that must be called is called', async () => {
      const choice = { type: 'function' as const, function: { name: 'weather' } }
      for (const tool_choice of ['required' as const, choice]) {
        const { choices } = await openAi(gateway()).chat.completions.create({
          model,
          messages: hello,
          tools: [weatherTool],
          tool_choice,
        })
        expect(choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: 'weather' } })
      }
    })

    test('gateway#58 #105 parse gives what the schema says', async () => {
      const { choices } = await openAi(gateway()).chat.completions.parse({
        model,
        messages: hello,
        response_format: zodResponseFormat(city, 'city'),
      })
      expect(choices[0]?.message.parsed).toEqual({ city: 'text', people: expect.any(Number) })
    })

    test('gateway#34 what the provider refuses raises with its message', async () => {
      gateway().fake(kind).setScript({ error: 'invalid', message: 'the prompt is odd' })
      const call = openAi(gateway()).chat.completions.create({ model, messages: hello })
      await expect(call).rejects.toThrow(OpenAI.BadRequestError)
      await expect(call).rejects.toThrow('the prompt is odd')
      expect(gateway().received(kind)).toHaveLength(1)
    })
  })

  test.each(EMBEDDING_KINDS)(
    'gateway#74 #105 embeddings of %s: floats and base64 are the same, in order',
    async (kind) => {
      const client = openAi(gateway())
      const input = ['one word', 'two words', 'and a third']
      const ask = { model: `embed-${kind}`, input, dimensions: 8 }
      const floats = await client.embeddings.create({ ...ask, encoding_format: 'float' })
      expect(floats.data.map(({ embedding }) => embedding)).toEqual(input.map((text) => embed(text, 8)))
      // Without a format this client asks for base64 and decodes it.
      const decoded = await client.embeddings.create(ask)
      expect(decoded.data.map(({ embedding }) => [...embedding])).toEqual(input.map((text) => embed(text, 8)))
      expect(floats.usage.prompt_tokens).toBeGreaterThan(0)
    },
  )

  test('gateway#105 v1/models names exactly what may be used', async () => {
    const listed = (await openAi(gateway()).models.list()).data.map(({ id }) => id)
    expect(listed.sort()).toEqual(SERVED_NAMES)
    const allowed = await gateway().createKey({ name: 'narrow', allowed_models: ['via-openai'] })
    const { data } = await openAi(gateway(), { apiKey: allowed }).models.list()
    expect(data).toEqual([{ id: 'via-openai', object: 'model', created: expect.any(Number), owned_by: 'openai' }])
    await expect(openAi(gateway(), { apiKey: allowed }).models.retrieve('via-gemini')).rejects.toThrow(
      OpenAI.NotFoundError,
    )
    expect(await openAi(gateway()).models.retrieve('via-gemini')).toMatchObject({
      id: 'via-gemini',
      owned_by: 'gemini',
    })
  })

  test('gateway#2 a session token is an API key', async () => {
    const client = openAi(gateway(), { apiKey: gateway().api.admin })
    expect((await client.chat.completions.create({ model: 'via-openai', messages: hello })).choices).toHaveLength(1)
  })

  test('gateway#1 #29 #33 refusals raise the classes that the client has for them', async () => {
    const ask = (model: string, client = openAi(gateway())): Promise<unknown> =>
      client.chat.completions.create({ model, messages: hello })
    await expect(ask('via-openai', openAi(gateway(), { apiKey: 'mvk_wrong' }))).rejects.toThrow(
      OpenAI.AuthenticationError,
    )
    await expect(ask('via-opnai')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      message: expect.stringContaining('via-openai'),
    })
    const narrow = await gateway().createKey({ name: 'narrower', allowed_models: ['via-openai'] })
    await expect(ask('via-gemini', openAi(gateway(), { apiKey: narrow }))).rejects.toThrow(OpenAI.PermissionDeniedError)
    gateway().fake('openai').setScript({ error: 'auth' })
    await expect(ask('via-openai')).rejects.toMatchObject({ status: 502, code: 'upstream_credentials_rejected' })
    gateway().fake('groq').setScript({ error: 'rate', retryAfter: 120 })
    await expect(ask('via-groq')).rejects.toThrow(OpenAI.RateLimitError)
  })

  test('gateway#45 a client with two retries makes one call after our attempts', async () => {
    let calls = 0
    const counting: typeof fetch = (...args) => {
      calls++
      return fetch(...args)
    }
    gateway().fake('openai-compatible').setScript({ error: 'server' })
    const client = openAi(gateway(), { maxRetries: 2, fetch: counting })
    const call = client.chat.completions.create({ model: 'via-openai-compatible', messages: hello })
    await expect(call).rejects.toThrow(OpenAI.InternalServerError)
    expect(calls).toBe(1)
    expect(gateway().received('openai-compatible')).toHaveLength(3)
  })

  test('gateway#53 responses pass where they are known', async () => {
    gateway().fake('openai').setScript({ text: 'Yes indeed' })
    const client = openAi(gateway())
    const whole = await client.responses.create({ model: 'via-openai', input: 'Well?' })
    expect(whole.output_text).toBe('Yes indeed')
    const streamed = await client.responses.stream({ model: 'via-openai', input: 'Well?' }).finalResponse()
    expect(streamed.output_text).toBe('Yes indeed')
    await expect(client.responses.create({ model: 'via-gemini', input: 'Well?' })).rejects.toThrow(OpenAI.NotFoundError)
    await expect(
      client.responses.create({ model: 'via-openai', input: 'Well?', previous_response_id: 'resp_1' }),
    ).rejects.toMatchObject({ code: 'unsupported_parameter', param: 'previous_response_id' })
  })

  test('gateway#100 a provider’s error that echoes the key is redacted', async () => {
    gateway().fake('openai').setScript({ error: 'invalid', message: 'bad key', echoKey: true })
    const error: Error = await openAi(gateway())
      .chat.completions.create({ model: 'via-openai', messages: hello })
      .then(
        () => new Error('it answered'),
        (raised: Error) => raised,
      )
    expect(error.message).toContain('bad key')
    expect(JSON.stringify(Object.values(error)) + error.message).not.toContain(
      String(gateway().fake('openai').credential['api_key']),
    )
  })

  test('gateway#83 records tell the tokens that the provider told', async () => {
    const { reported } = gateway().fake('ollama')
    const before = { ...reported }
    const client = openAi(gateway())
    const ids = ['tokens-whole', 'tokens-stream', 'tokens-embeddings']
    const [whole, stream, embeddings] = ids.map((id) => ({ headers: { 'x-request-id': id } }))
    await client.chat.completions.create({ model: 'via-ollama', messages: hello }, whole)
    await client.chat.completions.stream({ model: 'via-ollama', messages: hello }, stream).finalChatCompletion()
    await client.embeddings.create({ model: 'embed-ollama', input: ['one word', 'two words'] }, embeddings)
    const usage = await Promise.all(ids.map((id) => usageOf(gateway(), id)))
    const sum = (name: string): number => usage.reduce((total, record) => total + Number(record[name]), 0)
    expect(sum('input_tokens')).toBe(reported.input - before.input)
    expect(sum('output_tokens')).toBe(reported.output - before.output)
    expect(usage[0]).toMatchObject({
      model_used: upstreamName('ollama'),
      outcome: 'ok',
      surface: 'chat',
      stream: false,
    })
  })
})
