import type { IdSource } from '../base/ids.ts'
import type { Caller } from './caller.ts'
import { casConflict } from './edit.ts'
import { notFound } from './errors.ts'
import type { Mutation, Mutations } from './mutation.ts'
import type { Seams } from './seams.ts'
import { deleteCells, findCellNos } from './store/cells.ts'
import { findEdgesOf } from './store/edges.ts'
import { deleteJobs } from './store/jobs.ts'
import { buryMemory, findMemory } from './store/memories.ts'
import { deleteTags } from './store/tags.ts'
import { deleteVersions } from './store/versions.ts'

export interface ForgetAnswer {
  memory_id: string
  watermark: string
  cascaded_edges: number
  redacted_entries?: number
  warnings?: string[]
  ledger_id: string
}

/** Erases a Memory and leaves a tombstone without text. Contract: memory.md 3.2 DELETE. */
export class Forget {
  readonly #seams: Seams
  readonly #mutations: Mutations
  readonly #ids: IdSource

  constructor(seams: Seams, mutations: Mutations, ids: IdSource) {
    this.#seams = seams
    this.#mutations = mutations
    this.#ids = ids
  }

  /** @throws not_found 404, cas_conflict 412 when `expected` is given and is not the head. */
  async run(
    caller: Caller,
    workspaceId: string,
    memoryId: string,
    redactAudit: boolean,
    expected: string | undefined,
  ): Promise<ForgetAnswer> {
    return this.#mutations.run(caller, workspaceId, async (mutation) => {
      const { tx, now } = mutation
      const row = await findMemory(tx, workspaceId, memoryId)
      if (!row) throw notFound('memory', memoryId)
      if (expected !== undefined && expected !== row.head_watermark) throw casConflict(expected, row.head_watermark)
      const watermark = this.#ids('wmk_')
      const cascaded = await this.#cascade(mutation, memoryId)
      await this.#erase(mutation, workspaceId, memoryId)
      await buryMemory(tx, memoryId, watermark, mutation.changeSeq(), now)
      const ledgerId = mutation.record('forget', {
        target: memoryId,
        before: row.head_watermark,
        after: watermark,
        metadata: { cascaded_edges: cascaded },
        redactAudit,
      })
      const redacted = redactAudit ? await this.#redact(mutation, memoryId) : {}
      mutation.afterCommit(() => this.#seams.scrub())
      return { memory_id: memoryId, watermark, cascaded_edges: cascaded, ...redacted, ledger_id: ledgerId }
    })
  }

  async #redact(mutation: Mutation, memoryId: string): Promise<Pick<ForgetAnswer, 'redacted_entries' | 'warnings'>> {
    if (this.#seams.ledgerFile) return { redacted_entries: 0, warnings: ['redaction_unsupported'] }
    return { redacted_entries: await mutation.redact(memoryId) }
  }

  async #cascade(mutation: Mutation, memoryId: string): Promise<number> {
    const graph = this.#seams.graphView(mutation.tx)
    if (!graph) return 0
    const edges = await findEdgesOf(graph, memoryId)
    if (edges.length > 0) await this.#seams.deleteEdgesOf(mutation.tx, memoryId)
    for (const edge of edges) {
      mutation.record('edge_cascade_forget', {
        target: edge.edge_id,
        metadata: { edge_type: edge.edge_type, memory_id: memoryId },
      })
    }
    return edges.length
  }

  async #erase({ tx }: Mutation, workspaceId: string, memoryId: string): Promise<void> {
    const cellNos = await findCellNos(tx, memoryId)
    if (await deleteVersions(tx, memoryId)) await this.#seams.eraseBodies(tx, { workspaceId, memoryId })
    await deleteTags(tx, memoryId)
    await deleteCells(tx, cellNos)
    await deleteJobs(tx, cellNos)
    await this.#seams.deleteVectors(tx, cellNos)
  }
}
