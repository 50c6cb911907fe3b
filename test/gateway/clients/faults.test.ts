import OpenAI from 'openai'
import { beforeEach, describe, expect, test } from 'vitest'
import { tokensOf, type Behaviour } from '../../support/fake-model/index.ts'
import { describeGateway, EMBEDDING_KINDS, KINDS, openAi, usageOf, type ClientKind } from './support.ts'

const hello = [{ role: 'user' as const, content: 'Hello there' }]
const SAID = 'You said: Hello there'

describeGateway('providers that fail', (gateway) => {
  /** Its records are found by the id. */
  const named = (id = 'faults'): { headers: { 'x-request-id': string } } => ({ headers: { 'x-request-id': id } })
  const whole = async (kind: ClientKind, id?: string): Promise<unknown> => {
    const { choices } = await openAi(gateway()).chat.completions.create(
      { model: `via-${kind}`, messages: hello },
      named(id),
    )
    return choices[0]?.message.content
  }
  const streamed = async (kind: ClientKind, id?: string): Promise<string> => {
    let text = ''
    const ask = { model: `via-${kind}`, messages: hello, stream: true as const }
    for await (const chunk of await openAi(gateway()).chat.completions.create(ask, named(id))) {
      text += chunk.choices[0]?.delta.content ?? ''
    }
    return text
  }
  const refusal = (call: Promise<unknown>): Promise<Record<string, unknown>> =>
    call.then(
      (answer) => ({ answer }),
      (error: unknown) => Object(error),
    )

  describe.each(KINDS)('%s', (kind) => {
    /** What failed in an earlier test is well again: one good call closes a breaker. */
    beforeEach(() => whole(kind))
    const script = (behaviour: Behaviour & { call?: number }): void => gateway().fake(kind).setScript(behaviour)

    const atLeast500 = expect.toSatisfy((status: number) => status >= 500)

    test.each<[string, Behaviour]>([
      ['an error of its own', { error: 'server' }],
      ['an overload', { error: 'overloaded', status: 503 }],
      ['a reset', { reset: 'before' }],
      ['a page instead of an answer', { status: 200, body: '<html>hello</html>', contentType: 'text/html' }],
      ['an empty answer', { status: 200, body: '' }],
      ['broken JSON', { malformed: 'json' }],
    ])('gateway#31 #38 %s is tried again and then told', async (_name, behaviour) => {
      script({ call: 1, ...behaviour })
      expect(await whole(kind)).toBe(SAID)
      script(behaviour)
      expect(await refusal(whole(kind))).toMatchObject({ status: atLeast500 })
    })

    test.each<[string, Behaviour]>([
      ['an error', { error: 'server' }],
      ['a reset', { reset: 'before' }],
      ['nothing', { status: 200, body: '' }],
    ])('gateway#31 a stream that comes to %s before it begins is tried again', async (_name, behaviour) => {
      script({ call: 1, ...behaviour })
      expect(await streamed(kind)).toBe(SAID)
    })

    test('gateway#20 a redirect is not followed', async () => {
      const elsewhere = gateway().fake(kind === 'openai' ? 'groq' : 'openai')
      const before = elsewhere.received.length
      script({ redirect: `${elsewhere.url}/v1/chat/completions` })
      expect(await refusal(whole(kind))).toMatchObject({ status: 404, code: 'model_not_found' })
      expect(elsewhere.received).toHaveLength(before)
    })

    test('gateway#32 throttling is told with the wait that the provider asked for', async () => {
      script({ error: 'rate', retryAfter: 90 })
      const { status, code, headers } = await refusal(whole(kind))
      expect({ status, code }).toEqual({ status: 429, code: 'upstream_rate_limited' })
      expect(Number(Object(headers).get('retry-after'))).toSatisfy((wait: number) => wait > 80 && wait <= 90)
      const asked = gateway().received(kind).length
      expect(await refusal(streamed(kind))).toMatchObject({ status: 429 })
      expect(gateway().received(kind)).toHaveLength(asked)
    })

    test('gateway#33 a key that is no good is ours to mend', async () => {
      script({ error: 'auth' })
      expect(await refusal(whole(kind))).toMatchObject({ status: 502, code: 'upstream_credentials_rejected' })
    })

    test('gateway#35 a prompt that is too long is told as that', async () => {
      script({ error: 'context' })
      expect(await refusal(whole(kind))).toMatchObject({ status: 400 })
      expect(gateway().received(kind)).toHaveLength(2)
    })

    test('gateway#78 a stream without its end is told as truncated', async () => {
      for (const behaviour of [{ noStop: true }, { cut: 5 }, { reset: 6 }] satisfies Behaviour[]) {
        script({ text: ['one ', 'two ', 'three ', 'four ', 'five ', 'six '], ...behaviour })
        await expect(streamed(kind)).rejects.toThrow(OpenAI.APIError)
      }
    })

    test('gateway#68 #83 tokens of every part are recorded as the provider told them', async () => {
      const tokens = { input: 1000, cacheRead: 300, cacheWrite: 0, cacheWrite1h: 0, output: 70, reasoning: 0 }
      const written = ['anthropic', 'bedrock'].includes(kind) ? { cacheWrite: 200, cacheWrite1h: 100 } : {}
      const thought = kind === 'bedrock' ? {} : { reasoning: 30 }
      const usage = { ...tokens, ...written, ...thought }
      script({ usage })
      await whole(kind, `parts-${kind}`)
      await streamed(kind, `parts-stream-${kind}`)
      for (const id of [`parts-${kind}`, `parts-stream-${kind}`]) {
        const record = await usageOf(gateway(), id)
        expect(record).toMatchObject({
          outcome: 'ok',
          input_tokens: 1000,
          cache_read_tokens: 300,
          cache_write_tokens: usage.cacheWrite,
          cache_write_1h_tokens: usage.cacheWrite1h,
          output_tokens: 70,
          reasoning_tokens: usage.reasoning,
        })
      }
    })

    test('gateway#78 nothing told is estimated', async () => {
      script({ noUsage: true })
      await whole(kind, `guess-${kind}`)
      await streamed(kind, `guess-stream-${kind}`)
      for (const id of [`guess-${kind}`, `guess-stream-${kind}`]) {
        const { input_tokens: input, output_tokens: output, cost_state: state } = await usageOf(gateway(), id)
        expect({ input, output }).toEqual({ input: expect.toSatisfy(Number.isInteger), output: tokensOf(SAID) })
        expect(state).toMatch(/^(estimated|unknown_price)$/)
      }
    })

    test('gateway#75 other ends of lines, comments, marks and events of 10 MiB', async () => {
      for (const dress of [
        { newline: '\r\n' },
        { newline: '\r' },
        { bom: true, comments: true },
      ] satisfies Behaviour[]) {
        script(dress)
        expect(await streamed(kind)).toBe(SAID)
      }
      const huge = 'x'.repeat(10 * 1024 * 1024)
      script({ text: ['a', huge] })
      expect((await streamed(kind)).length).toBe(huge.length + 1)
    })
  })

  test.each(EMBEDDING_KINDS)('gateway#74 embeddings of %s: 250 at once come in order, or not at all', async (kind) => {
    const input = Array.from({ length: 250 }, (_, i) => `text ${i}`)
    const ask = { model: `embed-${kind}`, input, dimensions: 4 }
    const { data } = await openAi(gateway()).embeddings.create(ask)
    expect(data.map(({ index }) => index)).toEqual(input.map((_, i) => i))
    gateway().fake(kind).setScript({ error: 'invalid', message: 'no good' })
    expect(await refusal(openAi(gateway()).embeddings.create(ask))).toMatchObject({
      status: 400,
      message: expect.stringContaining('no good'),
    })
  })
})
