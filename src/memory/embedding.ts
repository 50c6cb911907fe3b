import { withDeadline } from '../base/deadline.ts'
import { errorText } from '../base/errors.ts'
import { span } from '../base/trace.ts'
import type { Embedder } from './embedder/types.ts'
import type { Workspace } from './model.ts'
import type { Logger } from './ports.ts'

export interface EmbeddingSettings {
  /** `provider:model` of workspaces that name none. */
  model: string
  /** How long a write waits for vectors; 0 leaves all to the queue. */
  inlineTimeoutMs: number
}

/** What a write got in time; `failed` tells a provider's failure from a lack of time. */
export interface Embedded {
  vectors: ReadonlyMap<string, Float32Array>
  failed: boolean
}

/** The models in use, and vectors for texts. Contract: memory.md 6. */
export class Embedding {
  readonly #settings: EmbeddingSettings
  readonly #create: (model: string) => Embedder
  readonly #log: Logger
  readonly #embedders = new Map<string, Embedder>()

  constructor(settings: EmbeddingSettings, create: (model: string) => Embedder, log: Logger) {
    this.#settings = settings
    this.#create = create
    this.#log = log
  }

  /** The embedder of the workspace's current model. */
  of(workspace: Pick<Workspace, 'embedding_model'>): Embedder {
    return this.embedder(workspace.embedding_model ?? this.#settings.model)
  }

  /** @throws invalid_input 400 when the provider is unknown. */
  embedder(model: string): Embedder {
    let embedder = this.#embedders.get(model)
    if (!embedder) {
      embedder = this.#create(model)
      this.#embedders.set(model, embedder)
    }
    return embedder
  }

  /** Vectors by text, as many as come in the time a write waits; equal texts are embedded once. Never throws. */
  async inline(embedder: Embedder, texts: readonly string[], signal: AbortSignal): Promise<Embedded> {
    const vectors = new Map<string, Float32Array>()
    if (texts.length === 0 || this.#settings.inlineTimeoutMs === 0) return { vectors, failed: false }
    return withDeadline(this.#settings.inlineTimeoutMs, signal, async (deadline) => {
      try {
        for await (const batch of this.batches(embedder, texts, deadline)) {
          for (const [text, vector] of batch) vectors.set(text, vector)
        }
        return { vectors, failed: false }
      } catch (error) {
        this.#log.warn({ model: embedder.model, reason: errorText(error) }, 'embedding is left to the queue')
        return { vectors, failed: !deadline.aborted }
      }
    })
  }

  /** @throws EmbedderError when the provider fails, an abort when time is up. */
  async query(embedder: Embedder, text: string, signal: AbortSignal): Promise<Float32Array> {
    const [vector] = await withDeadline(this.#settings.inlineTimeoutMs || 10_000, signal, (deadline) =>
      span('embed.query', { 'mem.embedding.model': embedder.model }, () => embedder.embed([text], 'query', deadline)),
    )
    if (!vector) throw new Error(`${embedder.model} gave no vector for the query`)
    return vector
  }

  /** Batch by batch. @throws as `Embedder.embed`, after the batches that came. */
  async *batches(
    embedder: Embedder,
    texts: readonly string[],
    signal: AbortSignal,
  ): AsyncGenerator<[text: string, vector: Float32Array][]> {
    const distinct = [...new Set(texts)]
    for (let start = 0; start < distinct.length; start += embedder.batchSize) {
      signal.throwIfAborted()
      const batch = distinct.slice(start, start + embedder.batchSize)
      const attributes = { 'mem.embedding.model': embedder.model, 'mem.embedding.texts': batch.length }
      const vectors = await span('embed.documents', attributes, () => embedder.embed(batch, 'document', signal))
      yield batch.flatMap((text, i): [string, Float32Array][] => {
        const vector = vectors[i]
        return vector ? [[text, vector]] : []
      })
    }
  }
}
