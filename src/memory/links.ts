import { toTimestamp } from '../base/clock.ts'
import { CodedError } from '../base/errors.ts'
import type { IdSource } from '../base/ids.ts'
import type { Queryable } from '../database/database.ts'
import type { Caller } from './caller.ts'
import { invalidInput, MemoryError, notFound } from './errors.ts'
import { SYNTHETIC_EDGE_TYPE, type Edge } from './model.ts'
import type { Mutation, Mutations } from './mutation.ts'
import { quotaExceeded, refuseBeyond, type Limits } from './quota.ts'
import { clientEdgeType, type BatchRequest } from './requests.ts'
import type { Seams } from './seams.ts'
import { countOutEdges, findEdge, findEdgeByTriple, findSynthetic } from './store/edges.ts'
import { findMemory } from './store/memories.ts'

/** An Edge that a client asks for. */
export interface EdgeWish {
  source_memory_id: string
  target_memory_id: string
  edge_type: string
  properties_json?: Record<string, unknown> | undefined
}

export interface LinkAnswer {
  edge: Edge
  ledger_id: string
}

export interface BatchAnswer {
  results: {
    index: number
    status: 'ok' | 'error'
    edge_id?: string
    ledger_id?: string
    error?: string
    error_code?: string
  }[]
  ok: number
  failed: number
}

/** Edges made and removed by clients. Contract: memory.md 3.3. */
export class Links {
  readonly #seams: Seams
  readonly #mutations: Mutations
  readonly #ids: IdSource
  readonly #limits: Limits

  constructor(seams: Seams, mutations: Mutations, ids: IdSource, limits: Limits) {
    this.#seams = seams
    this.#mutations = mutations
    this.#ids = ids
    this.#limits = limits
  }

  /** @throws 400, not_found 404, already_linked_via_synthetic 409, already_exists 409, quota_exceeded 429. */
  link(caller: Caller, workspaceId: string, wish: EdgeWish): Promise<LinkAnswer> {
    return this.#mutations.run(caller, workspaceId, (mutation) =>
      this.#link(mutation, caller, workspaceId, wish, this.#view(mutation), new Map()),
    )
  }

  /** Rows succeed or fail alone, under the rules of `link`. @throws quota_exceeded 429 with nothing written. */
  async batch(caller: Caller, workspaceId: string, { edges }: BatchRequest): Promise<BatchAnswer> {
    const { batch_edges: most } = this.#limits
    if (most > 0 && edges.length > most) throw quotaExceeded('batch_edges', most)
    return this.#mutations.run(caller, workspaceId, async (mutation) => {
      const results: BatchAnswer['results'] = []
      const made = new Map<string, Edge>()
      for (const [index, wish] of edges.entries()) {
        try {
          const answer = await this.#link(mutation, caller, workspaceId, wish, this.#view(mutation), made)
          results.push({ index, status: 'ok', edge_id: answer.edge.edge_id, ledger_id: answer.ledger_id })
        } catch (error) {
          if (!(error instanceof CodedError)) throw error
          results.push({ index, status: 'error', error: error.message, error_code: error.code })
        }
      }
      const ok = results.filter((row) => row.status === 'ok').length
      return { results, ok, failed: results.length - ok }
    })
  }

  /** @throws not_found 404, cannot_unlink_synthetic_edge 409. */
  async unlink(caller: Caller, workspaceId: string, edgeId: string): Promise<void> {
    await this.#mutations.run(caller, workspaceId, async (mutation) => {
      const edge = await findEdge(this.#view(mutation), workspaceId, edgeId)
      if (!edge) throw notFound('edge', edgeId)
      if (edge.edge_type === SYNTHETIC_EDGE_TYPE) {
        throw new MemoryError(
          'cannot_unlink_synthetic_edge',
          `edge ${edgeId} was made by auto-link and ends with a Memory`,
          {
            edge_id: edgeId,
          },
        )
      }
      await this.#seams.deleteEdge(mutation.tx, edgeId)
      mutation.record('unlink', { target: edgeId, metadata: describe(edge) })
    })
  }

  #view(mutation: Mutation): Queryable {
    const view = this.#seams.graphView(mutation.tx)
    if (!view) throw new Error('no graph store is configured')
    return view
  }

  /** `made` holds Edges of this mutation that a graph in another database does not show yet. */
  async #link(
    mutation: Mutation,
    caller: Caller,
    workspaceId: string,
    wish: EdgeWish,
    graph: Queryable,
    made: Map<string, Edge>,
  ): Promise<LinkAnswer> {
    const { source_memory_id: source, target_memory_id: target, properties_json } = wish
    const type = clientEdgeType.safeParse(wish.edge_type)
    if (!type.success) {
      throw invalidInput(`edge_type ${wish.edge_type} is not one of ${clientEdgeType.options.join(', ')}`, 'edge_type')
    }
    if (source === target)
      throw invalidInput('target_memory_id is the Memory itself: it cannot be linked to itself', 'target_memory_id')
    for (const id of [source, target]) {
      if (!(await findMemory(mutation.tx, workspaceId, id))) throw notFound('memory', id)
    }
    const synthetic = await findSynthetic(graph, workspaceId, source, target)
    if (synthetic) {
      throw new MemoryError('already_linked_via_synthetic', 'auto-link has already joined these Memories', {
        edge_id: synthetic.edge_id,
      })
    }
    const triple = `${source} ${target} ${type.data}`
    const known = made.get(triple) ?? (await findEdgeByTriple(graph, workspaceId, source, target, type.data))
    if (known) {
      throw new MemoryError('already_exists', `edge ${known.edge_id} already joins these Memories with this type`, {
        id: known.edge_id,
      })
    }
    await refuseBeyond(this.#limits, 'out_edges', () => countOutEdges(graph, source))
    const edge: Edge = {
      edge_id: this.#ids('edg_'),
      workspace_id: workspaceId,
      source_memory_id: source,
      target_memory_id: target,
      edge_type: type.data,
      ...(properties_json && { properties_json }),
      created_by_agent_id: caller.agentId,
      created_at: toTimestamp(mutation.now),
      watermark: this.#ids('wmk_'),
    }
    await this.#seams.insertEdge(mutation.tx, edge)
    made.set(triple, edge)
    return { edge, ledger_id: mutation.record('link', { target: edge.edge_id, metadata: describe(edge) }) }
  }
}

const describe = (edge: Edge): Record<string, unknown> => ({
  edge_type: edge.edge_type,
  source_memory_id: edge.source_memory_id,
  target_memory_id: edge.target_memory_id,
})
