import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { InferenceRequest, JsonAnswer } from '../../../src/gateway/exchange/exchange.ts'
import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import { bodyOf, bytesOf, candidateOf, faultOf, makeExchange, requestOf } from './support.ts'

const embed = (candidate: Candidate, fields: object, more: Partial<InferenceRequest> = {}) =>
  makeExchange(requestOf('embeddings', { model: 'asked', input: 'hi', ...fields }, more), candidate)

const told = ({ body }: JsonAnswer): Record<string, unknown> => JSON.parse(body.toString())
const base64 = (vector: number[]): string => Buffer.from(new Float32Array(vector).buffer).toString('base64')

const gemini = candidateOf('gemini', { model: 'gemini-embedding' })
const vertex = candidateOf('vertex', { model: 'text-embedding', row: { embedding_batch: 2 } })
const titan = candidateOf('bedrock', { model: 'amazon.titan-embed-text-v2:0' })
const cohere = candidateOf('bedrock', { model: 'cohere.embed-v4:0' })

describe('gateway#74 an openai relay', () => {
  const answer = {
    object: 'list',
    model: 'e',
    data: [{ index: 0, object: 'embedding', embedding: [0.5, -2] }],
    usage: { prompt_tokens: 3, total_tokens: 3 },
  }

  test('keeps its bytesOf, and the vectors of whoever knows both encodings', () => {
    const text = '{ "model":"asked","input":[[1,2]] ,"dimensions":2}'
    const exchange = makeExchange(requestOf('embeddings', text), candidateOf('openai'))
    expect(exchange.body.toString()).toBe(text.replace('asked', 'upstream-model'))
    const given = Buffer.from(JSON.stringify(answer, null, 2))
    const { body, facts } = exchange.answer(given)
    expect(body).toBe(given)
    expect(facts).toMatchObject({ usage: { input: 3, output: 0 }, responseModel: 'e' })
  })

  test('gives vectors as asked, where the provider knows only the other', () => {
    const asBase64 = { ...answer, data: [{ index: 0, object: 'embedding', embedding: base64([0.5, -2]) }] }
    expect(told(embed(candidateOf('ollama'), { encoding_format: 'base64' }).answer(bytesOf(answer)))).toEqual(asBase64)
    expect(told(embed(candidateOf('ollama'), {}).answer(bytesOf(asBase64)))).toEqual(answer)
  })

  test('renames dimensions for Mistral', () => {
    expect(bodyOf(embed(candidateOf('mistral'), { dimensions: 5 }))).toEqual({
      model: 'upstream-model',
      input: 'hi',
      output_dimension: 5,
    })
  })

  test.each(['', '{"data":[{"embedding":[1]}', '{"data":[{}]}', '{"data":[]}', '{"object":"list"}'])(
    '%j is no answer',
    (text) => {
      expect(faultOf(() => embed(candidateOf('openai'), {}).answer(Buffer.from(text)))).toMatchObject({
        class: 'transient',
      })
    },
  )

  test('gateway#83 the tokens of an answer without vectors are told', () => {
    for (const data of [[], [{}], undefined]) {
      const given = bytesOf({ ...answer, data })
      expect(faultOf(() => embed(candidateOf('openai'), {}).answer(given))).toMatchObject({
        error: { code: 'upstream_invalid_response' },
        facts: { usage: { input: 3, output: 0 }, responseModel: 'e' },
      })
    }
  })
})

describe('gateway#74 providers with a form of their own', () => {
  test('gemini: a hundred a call, in order', () => {
    expect(bodyOf(embed(gemini, { dimensions: 5 }))).toEqual({
      requests: [{ model: 'models/gemini-embedding', content: { parts: [{ text: 'hi' }] }, outputDimensionality: 5 }],
    })
    const input = Array.from({ length: 250 }, (_, i) => `t${i}`)
    const { split } = embed(gemini, { input })
    const sent = (split?.bodies ?? []).map(
      (body) => JSON.parse(body.toString()) as { requests: { content: { parts: { text: string }[] } }[] },
    )
    expect(sent.map(({ requests }) => requests.length)).toEqual([100, 100, 50])
    const answers = sent.map(({ requests }) =>
      bytesOf({ embeddings: requests.map(({ content }) => ({ values: [Number(content.parts[0]?.text.slice(1))] })) }),
    )
    const joined = split?.join(answers)
    const data = joined && told(joined)['data']
    expect(data).toEqual(input.map((_, index) => ({ object: 'embedding', index, embedding: [index] })))
    expect(joined?.facts.usage).toBeUndefined()
  })

  test('vertex: as many as the model takes', () => {
    const exchange = embed(vertex, { input: ['a', 'b', 'c'], dimensions: 5 })
    expect(exchange.split?.bodies.map((body) => JSON.parse(body.toString()))).toEqual([
      { instances: [{ content: 'a' }, { content: 'b' }], parameters: { outputDimensionality: 5 } },
      { instances: [{ content: 'c' }], parameters: { outputDimensionality: 5 } },
    ])
    const prediction = (value: number) => ({ embeddings: { values: [value], statistics: { token_count: 2 } } })
    const joined = exchange.split?.join([
      bytesOf({ predictions: [prediction(1), prediction(2)] }),
      bytesOf({ predictions: [prediction(3)] }),
    ])
    expect(joined && told(joined)).toMatchObject({
      object: 'list',
      model: 'text-embedding',
      data: [{ embedding: [1] }, { embedding: [2] }, { embedding: [3] }],
      usage: { prompt_tokens: 6, total_tokens: 6 },
    })
    expect(joined?.facts.usage).toMatchObject({ input: 6 })
  })

  test('bedrock: Titan one a call, Cohere 96', () => {
    expect(bodyOf(embed(titan, { dimensions: 256 }))).toEqual({ inputText: 'hi', dimensions: 256 })
    expect(embed(titan, { input: ['a', 'b'] }).split?.bodies).toHaveLength(2)
    const one = embed(titan, { encoding_format: 'base64' }).answer(
      bytesOf({ embedding: [0.5, -2], inputTextTokenCount: 3 }),
    )
    expect(told(one)).toMatchObject({ data: [{ index: 0, embedding: base64([0.5, -2]) }], usage: { prompt_tokens: 3 } })
    expect(bodyOf(embed(cohere, { input: ['a'] }))).toEqual({ texts: ['a'], input_type: 'search_document' })
    expect(embed(cohere, { input: Array.from({ length: 97 }, () => 'x') }).split?.bodies).toHaveLength(2)
    for (const embeddings of [[[1], [2]], { float: [[1], [2]] }]) {
      const answer = embed(cohere, { input: ['a', 'b'] }).answer(bytesOf({ embeddings }))
      expect(told(answer)).toMatchObject({
        data: [{ embedding: [1] }, { embedding: [2] }],
        usage: { prompt_tokens: 1 },
      })
    }
  })

  test('all or nothing: a part without its vectors is a fault', () => {
    const { split } = embed(titan, { input: ['a', 'b'] })
    const good = bytesOf({ embedding: [1] })
    expect(faultOf(() => split?.join([good, bytesOf({})]))).toMatchObject({
      class: 'transient',
      error: { code: 'upstream_invalid_response' },
    })
    expect(
      faultOf(() => embed(gemini, { input: ['a', 'b'] }).answer(bytesOf({ embeddings: [{ values: [1] }] }))),
    ).toMatchObject({ class: 'transient' })
  })

  test('gateway#83 the tokens of an answer with too few vectors, or none, are told', () => {
    const counted = { usageMetadata: { promptTokenCount: 5 } }
    for (const [candidate, given] of [
      [gemini, { embeddings: [{ values: [1] }], ...counted }],
      [gemini, counted],
      [cohere, { embeddings: [] }],
    ] as const) {
      expect(faultOf(() => embed(candidate, { input: ['a', 'b'] }).answer(bytesOf(given)))).toMatchObject({
        error: { code: 'upstream_invalid_response' },
        facts: { usage: candidate === gemini ? { input: 5 } : undefined },
      })
    }
    const bare = bytesOf({ inputTextTokenCount: 5 })
    expect(faultOf(() => embed(titan, {}).answer(bare))).toMatchObject({ facts: { usage: { input: 5 } } })
    const { split } = embed(titan, { input: ['a', 'b'] })
    expect(split?.facts([bytesOf({ embedding: [1], inputTextTokenCount: 7 }), bare]).usage).toMatchObject({ input: 12 })
  })

  test('what some parts reported is told without the others', () => {
    const { split } = embed(titan, { input: ['a', 'b', 'c', 'd'] })
    const counted = bytesOf({ embedding: [1], inputTextTokenCount: 7 })
    const silent = [bytesOf({ embedding: [1] }), Buffer.from('<html>')]
    expect(split?.facts([counted, ...silent, counted]).usage).toMatchObject({ input: 14, output: 0 })
    expect(split?.facts(silent).usage).toBeUndefined()
    expect(split?.facts([]).usage).toBeUndefined()
  })

  test('tokens are for openai alone; what is unknown is named', () => {
    for (const input of [[1, 2], [[1, 2]]]) {
      expect(() => embed(gemini, { input })).toThrow(
        expect.objectContaining({ status: 400, code: 'unsupported_content', param: 'input' }),
      )
    }
    expect(() => embed(gemini, { input: [] })).toThrow(expect.objectContaining({ status: 400, param: 'input' }))
    expect(embed(gemini, { user: 'u' }).dropped).toEqual(['user'])
    expect(() => embed(gemini, { user: 'u' }, { strict: true })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter' }),
    )
  })

  test('base64 holds the floats, whatever they are', () => {
    fc.assert(
      fc.property(fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 }), (vector) => {
        const answer = embed(titan, { encoding_format: 'base64' }).answer(bytesOf({ embedding: vector }))
        const [first] = told(answer)['data'] as { embedding: string }[]
        const read = Buffer.from(first?.embedding ?? '', 'base64')
        expect(vector.map((_, i) => read.readFloatLE(i * 4))).toEqual(vector.map((value) => Math.fround(value) + 0))
      }),
    )
  })
})
