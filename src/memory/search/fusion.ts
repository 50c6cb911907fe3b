import { type CellEntry, type MemoryEntry, position } from './cell-table.ts'
import { byScore, type Listed } from './memory-list.ts'
import type { Signals } from './signals.ts'

export interface Fused {
  memory: MemoryEntry
  /** In [0, 1]. */
  score: number
}

/** The caller's weights: both lists min-max-normalised, absent = 0. Contract: memory.md 4.2. */
export function fuseWeighted(
  keyword: readonly Listed[],
  vector: readonly Listed[],
  weights: { keyword: number; vector: number },
): Fused[] {
  const sums = new Map<MemoryEntry, number>()
  for (const [list, weight] of [
    [keyword, weights.keyword],
    [vector, weights.vector],
  ] as const) {
    for (const { memory, score } of minMax(list)) sums.set(memory, (sums.get(memory) ?? 0) + weight * score)
  }
  return [...sums].map(([memory, score]) => ({ memory, score })).sort(byScore)
}

/** Scores between those of the last and the first; all equal = 1. */
function minMax(list: readonly Listed[]): Fused[] {
  const highest = list[0]?.score ?? 0
  const range = highest - (list.at(-1)?.score ?? 0)
  return list.map(({ memory, score }) => ({ memory, score: range > 0 ? 1 - (highest - score) / range : 1 }))
}

/** How much of the scores of the Memories before and after one counts for it, by distance. */
const NEIGHBOUR_SHARES = [0.3, 0.1]

/**
 * The default fusion: the scaled sum of both scores of a Memory, and a share of those of its neighbours. The first of both
 * lists scores 1. Contract: memory.md 4.2.
 * @param passes whether a Memory passes the filter; others lend nothing
 */
export function fuseWithContext(signals: Signals, passes: (memory: MemoryEntry) => boolean): Fused[] {
  const { keyword, vector } = signals
  const found = new Set([...keyword.list, ...vector.list].map(({ memory }) => memory))
  const scored = new Set([...found].flatMap((memory) => around(memory, NEIGHBOUR_SHARES.length).filter(passes)))
  const base = baseScores([...scored], signals)
  const sums = [...scored].map((memory) => ({ memory, score: withNeighbours(memory, base) }))
  const highest = Math.max(...sums.map(({ score }) => score))
  const leader = keyword.list[0]?.memory === vector.list[0]?.memory ? keyword.list[0]?.memory : undefined
  return sums
    .map(({ memory, score }) => ({ memory, score: memory === leader ? 1 : score / highest }))
    .filter(({ score }) => score > 0)
    .sort(byScore)
}

/** The Memories up to `reach` before and after one in its stream, itself among them. */
function around(memory: MemoryEntry, reach: number): MemoryEntry[] {
  const at = position(memory)
  return memory.stream.slice(Math.max(0, at - reach), at + reach + 1)
}

function withNeighbours(memory: MemoryEntry, base: ReadonlyMap<MemoryEntry, number>): number {
  const at = position(memory)
  const scoreAt = (index: number): number => base.get(memory.stream[index] ?? memory) ?? 0
  return NEIGHBOUR_SHARES.reduce(
    (sum, share, i) =>
      sum +
      share * ((at > i ? scoreAt(at - 1 - i) : 0) + (at + 1 + i < memory.stream.length ? scoreAt(at + 1 + i) : 0)),
    scoreAt(at),
  )
}

/** By Memory: the sum of the best each signal says of one of its Cells. */
function baseScores(memories: readonly MemoryEntry[], signals: Signals): Map<MemoryEntry, number> {
  const cells = memories.flatMap((memory) => memory.cells)
  const base = new Map<MemoryEntry, number>()
  for (const scores of scaledScores(cells, signals)) {
    const best = new Map<MemoryEntry, number>()
    cells.forEach(({ memory }, i) => best.set(memory, Math.max(best.get(memory) ?? 0, scores[i] ?? 0)))
    for (const [memory, score] of best) base.set(memory, (base.get(memory) ?? 0) + score)
  }
  return base
}

/**
 * What each signal that found something says of Cells, 0 = nothing. Of two signals each counts by its weight and as a share
 * of its highest score, 1 in all; a single one speaks in its own scale.
 */
export function scaledScores(cells: readonly CellEntry[], { keyword, vector, fusionWeight }: Signals): Float32Array[] {
  const slots = Uint32Array.from(cells, ({ slot }) => slot)
  const heard = [
    { signal: keyword, weight: 1 },
    { signal: vector, weight: fusionWeight },
  ].filter(({ signal }) => (signal.list[0]?.score ?? 0) > 0)
  return heard.map(({ signal, weight }) => {
    const share = heard.length === 1 ? 1 : weight / (1 + fusionWeight) / (signal.list[0]?.score ?? 1)
    return signal.scoresAt(slots).map((score) => share * Math.max(0, score))
  })
}
