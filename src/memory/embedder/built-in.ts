import { setImmediate } from 'node:timers/promises'
import { embedDocument, HASH_DIMENSION, HASH_FUSION_WEIGHT, HASH_MODEL } from './hash.ts'
import { NOOP_DIMENSION, noopVector } from './noop.ts'
import type { Embedder, EmbedderSettings } from './types.ts'

/** Documents only: the query side of `hash:default` weighs words by the index it asks, so the index embeds it. */
export const hash = (settings: EmbedderSettings): Embedder =>
  builtIn(settings, embedDocument, {
    model: HASH_MODEL,
    dimension: HASH_DIMENSION,
    quality: 'fallback',
    fusionWeight: HASH_FUSION_WEIGHT,
  })

export const noop = (settings: EmbedderSettings): Embedder =>
  builtIn(settings, noopVector, {
    model: 'noop:default',
    dimension: NOOP_DIMENSION,
    quality: 'placeholder',
    fusionWeight: 0.05,
  })

/** A model that is a function of the text alone, of any length, without prefixes. */
function builtIn(
  { batchSize }: EmbedderSettings,
  vectorOf: (text: string) => Float32Array,
  properties: Pick<Embedder, 'model' | 'dimension' | 'quality' | 'fusionWeight'>,
): Embedder {
  return {
    ...properties,
    batchSize,
    maxInputTokens: Infinity,
    deterministic: true,
    async embed(texts, _purpose, signal) {
      // Lets other requests in between the batches of a long text; a short one has no others.
      if (texts.length > 1) await setImmediate()
      signal.throwIfAborted()
      return texts.map(vectorOf)
    },
  }
}
