import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import {
  anthropic,
  describeGateway,
  SERVED_NAMES,
  KINDS,
  olderAnthropic,
  openAi,
  WEATHER,
  weatherTool,
} from './support.ts'

const hello = [{ role: 'user' as const, content: 'Hello there' }]
const tools: Anthropic.Tool[] = [
  { name: 'weather', description: 'The weather of a city', input_schema: WEATHER.schema },
]

const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')
const callsOf = ({ content }: Anthropic.Message): Anthropic.ToolUseBlock[] =>
  content.filter((block) => block.type === 'tool_use')

/** The results of a message's calls. */
const resultsOf = (message: Anthropic.Message): Anthropic.MessageParam => ({
  role: 'user',
  content: callsOf(message).map(({ id }, i) => ({ type: 'tool_result', tool_use_id: id, content: `weather ${i}` })),
})

describeGateway('the anthropic client', (gateway) => {
  describe.each(KINDS)('%s', (kind) => {
    const ask = { model: `via-${kind}`, max_tokens: 4000, messages: hello }

    test.each([
      ['bearer and 2026-10-21', anthropic],
      ['x-api-key and 2023-06-01', olderAnthropic],
    ])('gateway#106 %s: messages and streams', async (_style, make) => {
      const client = make(gateway())
      const whole = await client.messages.create(ask)
      expect(whole).toMatchObject({ type: 'message', role: 'assistant', stop_reason: 'end_turn' })
      expect(textOf(whole)).toBe('You said: Hello there')
      expect(whole.usage.output_tokens).toBe(6)
      expect(whole._request_id).toMatch(/^\S+$/)
      const stream = client.messages.stream(ask)
      expect(await stream.finalText()).toBe('You said: Hello there')
      expect((await stream.finalMessage()).usage).toMatchObject({
        input_tokens: whole.usage.input_tokens,
        output_tokens: 6,
      })
      for (const { headers } of gateway().received(kind)) expect(JSON.stringify(headers)).not.toContain(gateway().key)
    })

    test('gateway#55 #106 parallel calls and their results', async () => {
      const client = anthropic(gateway())
      gateway()
        .fake(kind)
        .setScript({ calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')] })
      const whole = await client.messages.create({ ...ask, tools })
      const streamed = await client.messages.stream({ ...ask, tools }).finalMessage()
      for (const message of [whole, streamed]) {
        expect(message.stop_reason).toBe('tool_use')
        expect(callsOf(message).map(({ input }) => input)).toEqual([{ city: 'Rome' }, { city: 'Oslo' }])
        const answered = await client.messages.create({
          ...ask,
          tools,
          messages: [
            ...hello,
            { role: 'assistant', content: message.content as Anthropic.ContentBlockParam[] },
            resultsOf(message),
          ],
        })
        expect(textOf(answered)).toBe('The tools say: weather 0; weather 1')
      }
    })

    // The fake Anthropic holds no conversations, and says so in other words.
    test.skipIf(kind === 'anthropic')(
      'gateway#106 the runner of tools, which asks for a held conversation first',
      async () => {
        gateway()
          .fake(kind)
          .setScript({ calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')] })
        const run = vi.fn<(input: unknown) => Promise<string>>().mockResolvedValue('rain')
        const tool = betaZodTool({
          name: 'weather',
          description: 'The weather',
          inputSchema: z.object({ city: z.string() }),
          run,
        })
        for (const stream of [false, true]) {
          const runner = anthropic(gateway()).beta.messages.toolRunner({ ...ask, stream, tools: [tool] })
          expect(JSON.stringify((await runner.runUntilDone()).content)).toContain('The tools say: rain; rain')
        }
        expect(run).toHaveBeenCalledTimes(4)
      },
    )

    test('gateway#56 a tool that must be called is called', async () => {
      for (const tool_choice of [{ type: 'any' as const }, { type: 'tool' as const, name: 'weather' }]) {
        const message = await anthropic(gateway()).messages.create({ ...ask, tools, tool_choice })
        expect(callsOf(message)).toMatchObject([{ name: 'weather' }])
      }
    })

    test('gateway#58 parse gives what the schema says', async () => {
      const format = zodOutputFormat(z.object({ city: z.string(), people: z.int() }))
      const message = await anthropic(gateway()).messages.parse({ ...ask, output_config: { format } })
      expect(message.parsed_output).toEqual({ city: 'text', people: expect.any(Number) })
    })

    test('gateway#106 tokens are counted', async () => {
      const { input_tokens: tokens } = await anthropic(gateway()).messages.countTokens({
        model: ask.model,
        messages: hello,
      })
      expect(tokens).toBeGreaterThan(0)
    })
  })

  test('gateway#62 thinking with tools on Claude: the client of the family keeps its thoughts', async () => {
    for (const kind of ['anthropic', 'bedrock'] as const) {
      const client = anthropic(gateway())
      gateway()
        .fake(kind)
        .setScript({ calls: [WEATHER.call('Rome')], reasoning: 'I should look it up.' })
      const ask = {
        model: `via-${kind}`,
        max_tokens: 8000,
        tools,
        thinking: { type: 'enabled' as const, budget_tokens: 2000 },
      }
      const first = await client.messages.stream({ ...ask, messages: hello }).finalMessage()
      expect(first.content[0]).toMatchObject({
        type: 'thinking',
        thinking: 'I should look it up.',
        signature: expect.stringMatching(/./),
      })
      const second = await client.messages.create({
        ...ask,
        messages: [
          ...hello,
          { role: 'assistant', content: first.content as Anthropic.ContentBlockParam[] },
          resultsOf(first),
        ],
      })
      expect(textOf(second)).toBe('The tools say: weather 0')
    }
  })

  test('gateway#62 thinking with tools on Claude: a client that drops signatures gets its second turn', async () => {
    for (const kind of ['anthropic', 'bedrock'] as const) {
      const client = openAi(gateway())
      gateway()
        .fake(kind)
        .setScript({ calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')], reasoning: 'I should look it up.' })
      const ask = {
        model: `via-${kind}`,
        tools: [weatherTool],
        reasoning_effort: 'low' as const,
        max_completion_tokens: 8000,
      }
      for (const stream of [false, true]) {
        const first = stream
          ? await client.chat.completions.stream({ ...ask, messages: hello }).finalChatCompletion()
          : await client.chat.completions.create({ ...ask, messages: hello })
        const { tool_calls: calls = [] } = first.choices[0]?.message ?? {}
        expect(calls).toHaveLength(2)
        const bare = calls.flatMap((call) =>
          call.type === 'function' ? [{ id: call.id, type: call.type, function: call.function }] : [],
        )
        const second = await client.chat.completions.create({
          ...ask,
          messages: [
            ...hello,
            { role: 'assistant', content: null, tool_calls: bare },
            ...bare.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: 'sunny' })),
          ],
        })
        expect(second.choices[0]?.message.content).toBe('The tools say: sunny; sunny')
        const { body } = gateway().received(kind).at(-1) ?? {}
        const assistant = body.messages.find(({ role }: { role: string }) => role === 'assistant')
        expect(JSON.stringify(assistant.content[0])).toContain('I should look it up.')
      }
    }
  })

  test('gateway#62 signatures that the client keeps come back to Claude; lost ones turn thinking off', async () => {
    const client = openAi(gateway())
    gateway()
      .fake('anthropic')
      .setScript({ calls: [WEATHER.call('Rome')], reasoning: 'I should look it up.' })
    const ask = {
      model: 'via-anthropic',
      tools: [weatherTool],
      reasoning_effort: 'low' as const,
      max_completion_tokens: 8000,
    }
    const first = await client.chat.completions.create({ ...ask, messages: hello })
    const message = first.choices[0]?.message
    expect(message).toMatchObject({
      reasoning_content: 'I should look it up.',
      thinking_blocks: [{ type: 'thinking', thinking: 'I should look it up.', signature: expect.stringMatching(/./) }],
    })
    const lost = {
      id: 'toolu_unheard_of',
      type: 'function' as const,
      function: { name: 'weather', arguments: '{"city":"Rome"}' },
    }
    const { response, data } = await client.chat.completions
      .create({
        ...ask,
        messages: [
          ...hello,
          { role: 'assistant', content: null, tool_calls: [lost] },
          { role: 'tool', tool_call_id: lost.id, content: 'sunny' },
        ],
      })
      .withResponse()
    expect(data.choices[0]?.message.content).toBe('The tools say: sunny')
    expect(response.headers.get('x-mem-dropped')).toContain('reasoning_effort')
    expect(gateway().received('anthropic').at(-1)?.body.thinking?.type ?? 'disabled').toBe('disabled')
  })

  test('gateway#106 v1/models in the shape of the family, exactly the usable names', async () => {
    const listed = await anthropic(gateway()).models.list()
    const ids = listed.data.map(({ id }) => id)
    expect([...ids].sort()).toEqual(SERVED_NAMES)
    expect(listed.data[0]).toMatchObject({
      type: 'model',
      display_name: expect.any(String),
      created_at: expect.any(String),
    })
  })

  test('gateway#1 #106 refusals raise the classes that the client has for them', async () => {
    const ask = (model: string, client = anthropic(gateway())): Promise<unknown> =>
      client.messages.create({ model, max_tokens: 10, messages: hello })
    await expect(ask('via-anthropic', anthropic(gateway(), { apiKey: 'mvk_wrong' }))).rejects.toThrow(
      Anthropic.AuthenticationError,
    )
    await expect(ask('via-nothing')).rejects.toMatchObject({ status: 404, type: 'not_found_error' })
    gateway().fake('anthropic').setScript({ error: 'invalid', message: 'the prompt is odd' })
    await expect(ask('via-anthropic')).rejects.toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      apiMessage: 'the prompt is odd',
    })
    gateway().fake('anthropic').setScript({ error: 'rate', retryAfter: 120 })
    await expect(ask('via-anthropic')).rejects.toThrow(Anthropic.RateLimitError)
  })

  test('gateway#52 betas, cache marks and versions reach the provider as they came', async () => {
    const client = anthropic(gateway(), { defaultHeaders: { 'anthropic-beta': 'one-2026-01-01,two-2026-02-02' } })
    const content = [
      { type: 'text' as const, text: 'Hello there', cache_control: { type: 'ephemeral' as const, ttl: '1h' as const } },
    ]
    await client.messages.create({ model: 'via-anthropic', max_tokens: 10, messages: [{ role: 'user', content }] })
    const [{ headers, body } = { headers: {}, body: {} }] = gateway().received('anthropic')
    expect(headers).toMatchObject({
      'anthropic-beta': 'one-2026-01-01,two-2026-02-02',
      'anthropic-version': '2026-10-21',
    })
    expect(body.messages[0].content).toEqual(content)
  })
})
