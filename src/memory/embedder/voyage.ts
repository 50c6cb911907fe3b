import { indexedVectors, remoteEmbedder, requireKey, urlOf } from './remote.ts'
import type { Embedder, EmbedderSettings } from './types.ts'

const BASE_URL = 'https://api.voyageai.com/v1'

/** `voyage:<name>`. Contract: memory.md 6.1. */
export function voyage(name: string, settings: EmbedderSettings): Embedder {
  const apiKey = settings.apiKey ?? settings.providers.voyage?.apiKey
  return remoteEmbedder(
    {
      model: `voyage:${name}`,
      maxBatch: 128,
      maxInputTokens: 32_000,
      apiKey,
      request: (input, purpose) => ({
        url: urlOf(settings.baseUrl ?? BASE_URL, '/embeddings'),
        headers: { authorization: `Bearer ${requireKey(apiKey, 'voyage', 'VOYAGE_API_KEY')}` },
        body: { model: name, input, input_type: purpose },
      }),
      answer: indexedVectors,
    },
    settings,
  )
}
