import * as z from 'zod'
import { remoteEmbedder, requireKey, urlOf } from './remote.ts'
import type { Embedder, EmbedderSettings } from './types.ts'

const BASE_URL = 'https://generativelanguage.googleapis.com/v1beta'
const TASKS = { document: 'RETRIEVAL_DOCUMENT', query: 'RETRIEVAL_QUERY' } as const

const answer: z.ZodType<number[][]> = z
  .object({ embeddings: z.array(z.object({ values: z.array(z.number()) })) })
  .transform(({ embeddings }) => embeddings.map(({ values }) => values))

/** `gemini:<name>` over `batchEmbedContents`. Contract: memory.md 6.1. */
export function gemini(name: string, settings: EmbedderSettings): Embedder {
  const apiKey = settings.apiKey ?? settings.providers.gemini?.apiKey
  return remoteEmbedder(
    {
      model: `gemini:${name}`,
      maxBatch: 100,
      maxInputTokens: 2048,
      apiKey,
      request: (texts, purpose) => ({
        url: urlOf(settings.baseUrl ?? BASE_URL, `/models/${encodeURIComponent(name)}:batchEmbedContents`),
        headers: { 'x-goog-api-key': requireKey(apiKey, 'gemini', 'GEMINI_API_KEY') },
        body: {
          requests: texts.map((text) => ({
            model: `models/${name}`,
            content: { parts: [{ text }] },
            taskType: TASKS[purpose],
          })),
        },
      }),
      answer,
    },
    settings,
  )
}
