import type { Schema } from '../schema.ts'

/** Contract: runbook.md 6.6. */
export const EMBEDDING: Readonly<Record<string, Schema>> = {
  embeddingProvider: {
    type: 'string',
    enum: ['hash', 'openai', 'voyage', 'gemini', 'openai-compatible'],
    default: 'openai',
  },
  embeddingModel: { type: 'string', minLength: 1 },
  embeddingApiKey: { type: 'string', sensitive: true, description: "Else the provider's environment name" },
  embeddingBaseUrl: { type: 'string', format: 'url', description: 'Required for openai-compatible' },
}
