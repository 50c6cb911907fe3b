import * as z from 'zod'
import { postJson, type JsonRequest } from './http.ts'
import { EmbedderError, type Embedder, type EmbedderSettings, type Purpose } from './types.ts'
import { cutToBytes, unitVector } from './vector.ts'

/** What tells one provider's API from another's. */
export interface RemoteModel {
  /** `provider:model`. */
  model: string
  dimension?: number
  maxBatch: number
  maxInputTokens: number
  apiKey: string | undefined
  request(texts: readonly string[], purpose: Purpose): JsonRequest
  /** Reads an answer into the vectors in the order of the texts. */
  answer: z.ZodType<number[][]>
}

/** An embedder that asks a provider over HTTP. Contract: memory.md 6.1. */
export function remoteEmbedder(remote: RemoteModel, settings: EmbedderSettings): Embedder {
  const { model, maxInputTokens } = remote
  const provider = model.slice(0, model.indexOf(':'))
  let { dimension } = remote
  let isConfirmed = false

  /** The first answer has the say: behind a custom base URL another model may stand under the name. */
  function settle(vectors: readonly number[][]): void {
    const lengths = new Set(vectors.map(({ length }) => length))
    if (isConfirmed && dimension !== undefined) lengths.add(dimension)
    if (lengths.size !== 1 || lengths.has(0)) {
      throw new EmbedderError(`${provider} gave vectors of ${[...lengths].join(' and ')} values`, false)
    }
    dimension = vectors[0]?.length
    isConfirmed = true
  }

  return {
    model,
    get dimension() {
      return dimension
    },
    batchSize: Math.min(settings.batchSize, remote.maxBatch),
    maxInputTokens,
    deterministic: false,
    quality: 'production',
    fusionWeight: 1,
    async embed(texts, purpose, signal) {
      signal.throwIfAborted()
      if (texts.length === 0) return []
      const prefix = purpose === 'query' ? settings.queryPrefix : settings.documentPrefix
      const inputs = texts.map((text) => cutToBytes(prefix + text, 4 * maxInputTokens))
      const request = remote.request(inputs, purpose)
      const answer = remote.answer.safeParse(
        await postJson(provider, request, remote.apiKey, settings.timeoutMs, signal),
      )
      if (!answer.success) {
        const [issue] = answer.error.issues
        const where = issue?.path.join('.') ?? ''
        throw new EmbedderError(`${provider} gave an unexpected answer at "${where}": ${issue?.message ?? ''}`, false)
      }
      if (answer.data.length !== texts.length) {
        throw new EmbedderError(`${provider} gave ${answer.data.length} vectors for ${texts.length} texts`, false)
      }
      settle(answer.data)
      return answer.data.map(unitVector)
    },
  }
}

/** The key, or the error that names where it is expected. */
export function requireKey(apiKey: string | undefined, provider: string, variable: string): string {
  if (apiKey) return apiKey
  throw new EmbedderError(`${provider} needs an API key: set ${variable}`, false)
}

/** `data` of the providers that follow OpenAI: each vector names the text it is of; without a name they are in order. */
export const indexedVectors: z.ZodType<number[][]> = z
  .object({ data: z.array(z.object({ index: z.int().optional(), embedding: z.array(z.number()) })) })
  .transform(({ data }, context) => {
    const vectors: number[][] = []
    for (const [position, { index = position, embedding }] of data.entries()) {
      if (index < 0 || index >= data.length || vectors[index]) {
        context.addIssue({
          code: 'custom',
          path: ['data', position, 'index'],
          message: `index ${index} is out of place`,
        })
        return z.NEVER
      }
      vectors[index] = embedding
    }
    return vectors
  })

export const urlOf = (baseUrl: string, path: string): string => `${baseUrl.replace(/\/+$/, '')}${path}`
