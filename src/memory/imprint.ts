import { md5 } from '../base/hash.ts'
import type { IdSource } from '../base/ids.ts'
import { span } from '../base/trace.ts'
import type { AutoLink, LinkSearch } from './auto-link.ts'
import type { Caller } from './caller.ts'
import type { CellPlan } from './chunker/cell-plan.ts'
import { bodyColumns, chunkingOf, planNew, storeCells, storingBody } from './content.ts'
import type { Embedder } from './embedder/types.ts'
import type { EmbedQueue } from './embed-queue.ts'
import type { Embedded, Embedding } from './embedding.ts'
import { notFound } from './errors.ts'
import type { Workspace } from './model.ts'
import { elapsedMs, type Mutation, type Mutations } from './mutation.ts'
import { refuseBeyond, type Limits } from './quota.ts'
import type { ImprintRequest } from './requests.ts'
import type { Seams } from './seams.ts'
import { findCollection } from './store/collections.ts'
import { countMemories, insertMemory } from './store/memories.ts'
import { toJson } from './store/rows.ts'
import { insertTags } from './store/tags.ts'
import { insertVersion } from './store/versions.ts'

export interface ImprintAnswer {
  memory_id: string
  watermark: string
  content_md5: string
  cells_created: number
  recall_ready: boolean
  auto_linked_edges?: number
  written_by_agent_id: string
  ledger_id: string
  latency_ms: number
}

/** What a Memory keeps of another store: an id (which must be free), its writer, and times (ms). */
export interface Origin {
  memoryId?: string | undefined
  agentId?: string | undefined
  createdAt?: number | undefined
  updatedAt?: number | undefined
}

/** A Memory that is ready to be written. */
interface Draft {
  readonly caller: Caller
  readonly workspace: Workspace
  readonly request: ImprintRequest
  readonly origin: Origin
  readonly memoryId: string
  readonly agentId: string
  readonly watermark: string
  readonly contentMd5: string
  /** Its Cells. */
  readonly added: CellPlan['added']
  readonly embedder: Embedder
  readonly embedded: Embedded
  /** Whether it is to be linked, now or when its Cells are embedded. */
  readonly linked: boolean
  readonly search: LinkSearch | undefined
}

/** Creates a Memory with its Cells. Contract: memory.md 3.2, 7, 9.3. */
export class Imprint {
  readonly #seams: Seams
  readonly #mutations: Mutations
  readonly #ids: IdSource
  readonly #embedding: Embedding
  readonly #queue: EmbedQueue
  readonly #autoLink: AutoLink
  readonly #limits: Limits

  constructor(parts: {
    seams: Seams
    mutations: Mutations
    ids: IdSource
    embedding: Embedding
    queue: EmbedQueue
    autoLink: AutoLink
    limits: Limits
  }) {
    this.#seams = parts.seams
    this.#mutations = parts.mutations
    this.#ids = parts.ids
    this.#embedding = parts.embedding
    this.#queue = parts.queue
    this.#autoLink = parts.autoLink
    this.#limits = parts.limits
  }

  /**
   * Without an `origin` the caller is the writer and the time is now; the ledger tells of the caller always.
   * @throws invalid_input 400, not_found 404 (collection), quota_exceeded 429.
   */
  async run(
    caller: Caller,
    workspace: Workspace,
    request: ImprintRequest,
    origin: Origin = {},
  ): Promise<ImprintAnswer> {
    const { id: workspaceId } = workspace
    const { collection_id: collectionId, content } = request
    if (collectionId !== undefined && !(await findCollection(this.#seams.metadata, workspaceId, collectionId))) {
      throw notFound('collection', collectionId)
    }
    const plan = planNew(chunkingOf(workspace, request.chunker_id, request.chunker_config), content)
    const embedder = this.#embedding.of(workspace)
    const texts = plan.added.map(({ text }) => text)
    const embedded = await this.#embedding.inline(embedder, texts, caller.signal)

    const linked = request.auto_link !== false && this.#autoLink.applies(workspace)
    const newCells = plan.added.map(({ seq, text }) => ({ seq, vector: embedded.vectors.get(text) }))
    const isEmbedded = this.#seams.vectorShared && newCells.every(({ vector }) => vector)
    const search =
      linked && isEmbedded
        ? await span('auto_link.search', {}, () => this.#autoLink.search(workspace, embedder, newCells))
        : undefined
    const { memoryId = this.#ids('mem_'), agentId = caller.agentId } = origin
    const watermark = this.#ids('wmk_')
    const draft: Draft = {
      caller,
      workspace,
      request,
      origin,
      memoryId,
      agentId,
      watermark,
      contentMd5: md5(content),
      added: plan.added,
      embedder,
      embedded,
      linked,
      search,
    }
    const version = { workspaceId, memoryId, watermark }
    return storingBody(this.#seams, version, { content, cells: texts }, caller.signal, () =>
      this.#mutations.run(caller, workspaceId, (mutation) => this.#write(mutation, draft)),
    )
  }

  /** All of it, in one transaction. */
  async #write(mutation: Mutation, draft: Draft): Promise<ImprintAnswer> {
    const { caller, workspace, request, memoryId, agentId, watermark, contentMd5, added, embedder, search } = draft
    const { tx } = mutation
    const { id: workspaceId } = workspace
    const { collection_id: collectionId } = request
    if (collectionId !== undefined && !(await findCollection(tx, workspaceId, collectionId))) {
      throw notFound('collection', collectionId)
    }
    await refuseBeyond(this.#limits, 'memories_per_workspace', () => countMemories(tx, workspaceId))
    const owner = { workspaceId, memoryId, agentId }
    const { complete, pending } = await storeCells(
      mutation,
      this.#seams,
      this.#ids,
      owner,
      added,
      embedder,
      draft.embedded,
    )
    const isReady = complete && added.length > 0
    await this.#insert(mutation, draft, { complete, isReady })
    if (request.tags) await insertTags(tx, workspaceId, memoryId, request.tags)
    const links = await this.#autoLink.admit(mutation, workspace, memoryId, search)
    const ledgerId = mutation.record('imprint', {
      target: memoryId,
      after: watermark,
      metadata: {
        cells_created: added.length,
        cells_re_embedded: added.length,
        ...(links.length > 0 && { auto_link_edges: links.length }),
      },
    })
    await this.#autoLink.write(mutation, workspaceId, memoryId, search, links)
    if (!isReady) mutation.afterCommit(() => this.#queue.takeOver(workspaceId, embedder.model, pending))
    return {
      memory_id: memoryId,
      watermark,
      content_md5: contentMd5,
      cells_created: added.length,
      recall_ready: isReady,
      ...(links.length > 0 && { auto_linked_edges: links.length }),
      written_by_agent_id: agentId,
      ledger_id: ledgerId,
      latency_ms: elapsedMs(caller),
    }
  }

  /** The Memory and its first version. */
  async #insert(
    mutation: Mutation,
    { workspace, request, origin, memoryId, agentId, watermark, contentMd5, added, embedder, linked }: Draft,
    { complete, isReady }: { complete: boolean; isReady: boolean },
  ): Promise<void> {
    const { tx, now } = mutation
    const { createdAt = now, updatedAt = createdAt } = origin
    await insertMemory(tx, {
      memory_id: memoryId,
      workspace_id: workspace.id,
      collection_id: request.collection_id ?? null,
      content_md5: contentMd5,
      head_watermark: watermark,
      created_watermark: watermark,
      written_by_agent_id: agentId,
      last_modified_by_agent_id: agentId,
      chunker_id: request.chunker_id ?? null,
      chunker_config: toJson(request.chunker_config),
      cell_count: added.length,
      embedded_model: isReady ? embedder.model : null,
      auto_link_due: Number(linked && !complete),
      change_seq: mutation.changeSeq(),
      created_at: createdAt,
      updated_at: updatedAt,
      forgotten_at: null,
    })
    await insertVersion(tx, {
      watermark,
      memory_id: memoryId,
      version_no: 1,
      op: 'imprint',
      agent_id: agentId,
      content_md5_before: null,
      content_md5_after: contentMd5,
      ...bodyColumns(this.#seams, request.content),
      created_at: updatedAt,
    })
  }
}
