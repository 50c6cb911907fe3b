/** What a model provider promises. Contract: memory.md 6.1. */
export interface Embedder {
  /** `provider:model`, the name stored beside every vector. */
  readonly model: string
  /** Values a vector; undefined until the first answer tells. */
  readonly dimension: number | undefined
  readonly batchSize: number
  /** Longer texts are cut for embedding only. */
  readonly maxInputTokens: number
  readonly deterministic: boolean
  readonly quality: 'production' | 'fallback' | 'placeholder'
  /** Weight of its vectors in the default fusion, in (0, 1]. */
  readonly fusionWeight: number
  /**
   * Unit-length vectors in the order of the texts (at most `batchSize`); a text without features gives a zero vector.
   * @throws EmbedderError when the provider fails; `retryable` tells whether asking again can help.
   * @throws the signal's reason when it is aborted.
   */
  embed(texts: readonly string[], purpose: Purpose, signal: AbortSignal): Promise<Float32Array[]>
}

export type Purpose = 'document' | 'query'

/** The section `embedding` of the configuration, and what the provider variables say. Contract: memory.md 6.1, 10. */
export interface EmbedderSettings {
  /** The server model: the only one that `apiKey`, `baseUrl` and paths outside `localDir` are for. */
  model: string
  apiKey?: string
  baseUrl?: string
  providers: {
    openai?: { apiKey?: string; baseUrl?: string }
    voyage?: { apiKey?: string }
    gemini?: { apiKey?: string }
  }
  /** Of one request to a provider. */
  timeoutMs: number
  batchSize: number
  /** Put before each text by models of a provider; the built-in ones count words and need none. */
  queryPrefix: string
  documentPrefix: string
  localDir?: string
}

export class EmbedderError extends Error {
  readonly retryable: boolean

  constructor(message: string, retryable: boolean) {
    super(message)
    this.name = 'EmbedderError'
    this.retryable = retryable
  }
}
