import Anthropic from '@anthropic-ai/sdk'
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { aiModel, anthropic, describeGateway, KINDS, langchain, openAi, WEATHER, type ClientKind } from './support.ts'

const hello = [{ role: 'user' as const, content: 'Hello there' }]
const weather = tool({
  description: 'The weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => Promise.resolve(`sun in ${city}`),
})
const city = z.object({ city: z.string(), people: z.int() })

describeGateway('other clients', (gateway) => {
  describe.each(KINDS)('%s', (kind: ClientKind) => {
    const model = `via-${kind}`

    test('gateway#107 ai: text, stream, a loop of tools, objects, usage', async () => {
      const whole = await generateText({ model: aiModel(gateway(), model), prompt: 'Hello there' })
      expect(whole.text).toBe('You said: Hello there')
      expect(whole.usage.outputTokens).toBe(6)
      const stream = streamText({ model: aiModel(gateway(), model), prompt: 'Hello there' })
      expect(await stream.text).toBe('You said: Hello there')
      expect((await stream.usage).outputTokens).toBe(6)
      const object = await generateObject({ model: aiModel(gateway(), model), prompt: 'Which city?', schema: city })
      expect(object.object).toEqual({ city: 'text', people: expect.any(Number) })

      gateway()
        .fake(kind)
        .setScript({ calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')] })
      const loop = streamText({
        model: aiModel(gateway(), model),
        prompt: 'The weather?',
        tools: { weather },
        stopWhen: stepCountIs(3),
      })
      expect(await loop.text).toBe('The tools say: sun in Rome; sun in Oslo')
      expect(await loop.steps).toHaveLength(2)
    })

    test('gateway#107 LangChain: text, stream, tools, structured output, usage', async () => {
      const chat = langchain(gateway(), model)
      const whole = await chat.invoke('Hello there')
      expect(whole.text).toBe('You said: Hello there')
      expect(Object(whole.usage_metadata).output_tokens).toBe(6)
      let text = ''
      let tokens = 0
      for await (const chunk of await chat.stream('Hello there')) {
        text += chunk.text
        tokens += Object(chunk.usage_metadata).output_tokens ?? 0
      }
      expect({ text, tokens }).toEqual({ text: 'You said: Hello there', tokens: 6 })
      const structured = chat.withStructuredOutput(city, { method: 'jsonSchema' })
      expect(await structured.invoke('Which city?')).toEqual({ city: 'text', people: expect.any(Number) })

      gateway()
        .fake(kind)
        .setScript({ calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')] })
      const bound = chat.bindTools([
        { name: 'weather', description: 'The weather', schema: z.object({ city: z.string() }) },
      ])
      const called = await bound.invoke('The weather?')
      expect(called.tool_calls?.map(({ args }) => args)).toEqual([{ city: 'Rome' }, { city: 'Oslo' }])
      const results = (called.tool_calls ?? []).map(({ id = '' }, i) => ({
        role: 'tool' as const,
        tool_call_id: id,
        content: `weather ${i}`,
      }))
      const answered = await bound.invoke([{ role: 'user', content: 'The weather?' }, called, ...results])
      expect(answered.text).toBe('The tools say: weather 0; weather 1')
    })
  })

  /** Reads a stream to its end with each client and gives the text. */
  const readers: Record<string, (model: string) => Promise<string>> = {
    openai: async (model) => {
      let text = ''
      for await (const chunk of await openAi(gateway()).chat.completions.create({
        model,
        messages: hello,
        stream: true,
      })) {
        text += chunk.choices[0]?.delta.content ?? ''
      }
      return text
    },
    anthropic: (model) => anthropic(gateway()).messages.stream({ model, max_tokens: 500, messages: hello }).finalText(),
    ai: async (model) => {
      let failure: unknown
      const stream = streamText({
        model: aiModel(gateway(), model),
        prompt: 'Hello there',
        maxRetries: 0,
        onError: ({ error }) => void (failure = error),
      })
      let text = ''
      for await (const piece of stream.textStream) text += piece
      if (failure !== undefined) throw failure instanceof Error ? failure : new Error(JSON.stringify(failure))
      return text
    },
    langchain: async (model) => {
      let text = ''
      for await (const chunk of await langchain(gateway(), model).stream('Hello there')) text += chunk.text
      return text
    },
  }

  test.each(Object.keys(readers))('gateway#79 an error in the middle of a stream raises in %s', async (name) => {
    for (const kind of ['openai', 'anthropic', 'gemini', 'bedrock'] as const) {
      gateway().fake(kind).setScript({ errorAfter: 2, message: 'it broke in the middle' })
      await expect(readers[name]?.(`via-${kind}`)).rejects.toSatisfy(
        (error) => !(error instanceof TypeError) && (typeof error === 'object' || typeof error === 'string'),
      )
      gateway().fake(kind).setScript({ noStop: true })
      await expect(readers[name]?.(`via-${kind}`)).rejects.toBeDefined()
    }
  })

  test('gateway#79 the clients of the families raise their own errors', async () => {
    gateway().fake('openai').setScript({ errorAfter: 1, message: 'it broke in the middle' })
    await expect(readers['openai']?.('via-openai')).rejects.toThrow(OpenAI.APIError)
    gateway().fake('anthropic').setScript({ errorAfter: 1, message: 'it broke in the middle' })
    await expect(readers['anthropic']?.('via-anthropic')).rejects.toThrow(Anthropic.APIError)
  })

  test('gateway#36 an error as the first event of a stream is not the end: another attempt answers', async () => {
    for (const kind of ['openai', 'anthropic', 'gemini', 'bedrock'] as const) {
      gateway().fake(kind).setScript({ call: 1, errorAfter: 0 })
      expect(await readers['openai']?.(`via-${kind}`)).toBe('You said: Hello there')
    }
  })

  test('gateway#75 streams cut at every byte mean the same', async () => {
    for (const kind of KINDS) {
      gateway()
        .fake(kind)
        .setScript({ text: ['Grüße ', '😀', ' end'], chunk: 1 })
      expect(await readers['openai']?.(`via-${kind}`)).toBe('Grüße 😀 end')
      expect(await readers['anthropic']?.(`via-${kind}`)).toBe('Grüße 😀 end')
    }
  })

  test('gateway#76 heartbeats of a silent provider harm no client', async () => {
    // Right after the first content.
    gateway()
      .fake('openai')
      .setScript({ pause: { after: 2, ms: 17_000 } })
    gateway()
      .fake('anthropic')
      .setScript({ pause: { after: 4, ms: 17_000 } })
    const models = ['via-openai', 'via-anthropic']
    const raw = async (surface: string, model: string): Promise<string> => {
      const body = JSON.stringify({ model, max_tokens: 500, messages: hello, stream: true })
      const headers = { authorization: `Bearer ${gateway().key}`, 'content-type': 'application/json' }
      return (await fetch(`${gateway().base}/v1/${surface}`, { method: 'POST', body, headers })).text()
    }
    const beats = ['chat/completions', 'messages'].flatMap((surface) => models.map((model) => raw(surface, model)))
    const all = Object.values(readers).flatMap((read) => models.map(read))
    expect(await Promise.all(all)).toEqual(all.map(() => 'You said: Hello there'))
    const [byOpenAi = '', translated = '', toAnthropic = '', byAnthropic = ''] = await Promise.all(beats)
    for (const text of [byOpenAi, translated]) expect(text).toContain(': ping\n\n')
    for (const text of [toAnthropic, byAnthropic]) expect(text.split('event: ping').length).toBeGreaterThan(1)
  })

  test('gateway#41 a client that leaves takes its upstream call along', async () => {
    for (const kind of KINDS) {
      gateway().fake(kind).setScript({ text: 'a', repeat: 50, paceMs: 100 })
      const stream = await openAi(gateway()).chat.completions.create({
        model: `via-${kind}`,
        messages: hello,
        stream: true,
      })
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
      const [call] = gateway().received(kind)
      const closed = gateway()
        .fake(kind)
        .waitForClosed((each) => each === call)
      expect(await closed).toBe(call)
    }
  })
})
