import * as z from 'zod'
import { optional, type Json } from '../chat/json.ts'
import type { Candidate } from '../routing/candidate.ts'

export interface Embedded {
  readonly vectors: readonly (readonly number[])[]
  /** As the provider counted them; most count none. */
  readonly tokens: number | undefined
}

/** How a provider takes texts and gives their vectors. Contract: gateway.md 5.6. */
export interface EmbeddingDialect {
  /** The most texts of a call. */
  readonly batch: number
  write(texts: readonly string[], dimensions: number | undefined): Json
  /** Undefined for what is no such answer; one may lack vectors and report its tokens all the same. */
  read(answer: Json): Embedded | undefined
}

/** Of a candidate that does not speak OpenAI's. */
export function dialectOf({ upstream: { credential }, model, row }: Candidate): EmbeddingDialect {
  if (credential.kind === 'vertex') return { ...VERTEX, batch: row?.embedding_batch ?? 1 }
  if (credential.kind === 'bedrock') return /cohere/i.test(model) ? COHERE : TITAN
  return geminiOf(model)
}

const vector = z.array(z.number())

const geminiAnswer = z.object({
  embeddings: z.array(z.object({ values: vector })).default([]),
  usageMetadata: z.object({ promptTokenCount: z.number().optional() }).optional(),
})

const geminiOf = (model: string): EmbeddingDialect => ({
  batch: 100,
  write: (texts, outputDimensionality) => ({
    requests: texts.map((text) =>
      optional({ model: `models/${model}`, content: { parts: [{ text }] }, outputDimensionality }),
    ),
  }),
  read: (answer) => {
    const { data } = geminiAnswer.safeParse(answer)
    return (
      data && { vectors: data.embeddings.map(({ values }) => values), tokens: data.usageMetadata?.promptTokenCount }
    )
  },
})

const vertexAnswer = z.object({
  predictions: z.array(
    z.object({
      embeddings: z.object({
        values: vector,
        statistics: z.object({ token_count: z.number().optional() }).optional(),
      }),
    }),
  ),
})

const VERTEX: Omit<EmbeddingDialect, 'batch'> = {
  write: (texts, outputDimensionality) => ({
    instances: texts.map((content) => ({ content })),
    ...(outputDimensionality !== undefined && { parameters: { outputDimensionality } }),
  }),
  read: (answer) => {
    const { data } = vertexAnswer.safeParse(answer)
    const all = data?.predictions.map(({ embeddings }) => embeddings)
    return (
      all && {
        vectors: all.map(({ values }) => values),
        tokens: sumOf(all.map((each) => each.statistics?.token_count)),
      }
    )
  },
}

const titanAnswer = z.object({ embedding: vector.optional(), inputTextTokenCount: z.number().optional() })

const TITAN: EmbeddingDialect = {
  batch: 1,
  write: ([inputText], dimensions) => optional({ inputText, dimensions }),
  read: (answer) => {
    const { data } = titanAnswer.safeParse(answer)
    return data && { vectors: data.embedding ? [data.embedding] : [], tokens: data.inputTextTokenCount }
  },
}

const cohereAnswer = z.object({ embeddings: z.union([z.array(vector), z.object({ float: z.array(vector) })]) })

const COHERE: EmbeddingDialect = {
  batch: 96,
  write: (texts, dimensions) => optional({ texts, input_type: 'search_document', output_dimension: dimensions }),
  read: (answer) => {
    const { data } = cohereAnswer.safeParse(answer)
    return (
      data && { vectors: Array.isArray(data.embeddings) ? data.embeddings : data.embeddings.float, tokens: undefined }
    )
  },
}

const sumOf = (counts: readonly (number | undefined)[]): number | undefined =>
  counts.reduce<number | undefined>(
    (sum, count) => (sum === undefined || count === undefined ? undefined : sum + count),
    0,
  )
