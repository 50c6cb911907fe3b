import type { SearchFilter } from './search/types.ts'
import { passes } from './filter.ts'
import type { RecallHit } from './model.ts'
import type { RecallRequest } from './requests.ts'
import type { Graph, Step } from './walk.ts'

const DECAY = 0.7

/** A Memory that direct hits led to. */
export interface GraphHit {
  step: Step
  score: number
  /** Hops from the direct hit, from 1. */
  layer: number
}

/**
 * Follows Edges from the direct hits: score = weight × 0.7^layer × score of the direct hit, the best path wins.
 * A filtered Memory is walked through. All walks together end after 5 s, those of the best hits first. Contract: memory.md 4.4.
 */
export async function expand(
  graph: Graph,
  workspaceId: string,
  seeds: readonly Pick<RecallHit, 'memory_id' | 'score'>[],
  expansion: NonNullable<RecallRequest['graph_expansion']>,
  filter: SearchFilter,
): Promise<{ hits: GraphHit[]; expanded: number }> {
  if (!graph.isAvailable || expansion.depth === 0) return { hits: [], expanded: 0 }
  const direct = new Set(seeds.map((seed) => seed.memory_id))
  const best = new Map<string, GraphHit>()
  const deadline = graph.deadline()
  for (const seed of seeds) {
    const { depth, direction, edge_types: types } = expansion
    const { layers } = await graph.walk(workspaceId, [seed.memory_id], depth, direction, types, deadline)
    for (const [index, steps] of layers.entries()) {
      const layer = index + 1
      const score = expansion.weight * DECAY ** layer * seed.score
      for (const step of steps) {
        const id = step.memory.memory_id
        const known = best.get(id)
        if (!direct.has(id) && (!known || known.score < score)) best.set(id, { step, score, layer })
      }
    }
  }
  const hits = [...best.values()]
    .filter(({ step }) => passes(step.memory, filter))
    .sort((a, b) => b.score - a.score || (a.step.memory.memory_id < b.step.memory.memory_id ? -1 : 1))
  return { hits: hits.slice(0, expansion.max_neighbors), expanded: hits.length }
}
