import { indexedVectors, remoteEmbedder, requireKey, urlOf } from './remote.ts'
import type { Embedder, EmbedderSettings } from './types.ts'

const BASE_URL = 'https://api.openai.com/v1'
const DIMENSIONS: Readonly<Record<string, number>> = { 'text-embedding-3-small': 1536, 'text-embedding-3-large': 3072 }

/** `openai:<name>` over any compatible `/embeddings` endpoint; a custom base URL needs no key. Contract: memory.md 6.1. */
export function openai(name: string, settings: EmbedderSettings): Embedder {
  const apiKey = settings.apiKey ?? settings.providers.openai?.apiKey
  const baseUrl = settings.baseUrl ?? settings.providers.openai?.baseUrl
  const dimension = DIMENSIONS[name]
  return remoteEmbedder(
    {
      model: `openai:${name}`,
      ...(dimension !== undefined && { dimension }),
      maxBatch: 2048,
      maxInputTokens: 8191,
      apiKey,
      request: (input) => {
        const key = baseUrl === undefined ? requireKey(apiKey, 'openai', 'OPENAI_API_KEY') : apiKey
        return {
          url: urlOf(baseUrl ?? BASE_URL, '/embeddings'),
          headers: key ? { authorization: `Bearer ${key}` } : {},
          body: { model: name, input },
        }
      },
      answer: indexedVectors,
    },
    settings,
  )
}
