import type { CellEntry, CellTable, MemoryEntry } from './cell-table.ts'
import { TopK } from './top-k.ts'

/** A Memory, its best Cell in one list, and that Cell's score. */
export interface Listed {
  memory: MemoryEntry
  cell: CellEntry
  score: number
}

/** Score descending, then id. */
export function byScore(a: { memory: MemoryEntry; score: number }, b: { memory: MemoryEntry; score: number }): number {
  return b.score - a.score || (a.memory.id < b.memory.id ? -1 : 1)
}

/** The `depth` Memories whose best Cell scores highest, of scores by slot (0 = not found). */
export function listByScores(
  table: CellTable,
  scores: Float32Array,
  mask: Uint8Array | undefined,
  depth: number,
): Listed[] {
  const { best, slots } = table.passArrays()
  const { memoryAt } = table
  for (let slot = 0; slot < table.slots; slot++) {
    const score = scores[slot] ?? 0
    if (score <= 0 || (mask && mask[slot] !== 1)) continue
    const number = memoryAt[slot] ?? 0
    const known = best[number] ?? 0
    if (score < known || (score === known && table.at(slot).seq > table.at(slots[number] ?? 0).seq)) continue
    best[number] = score
    slots[number] = slot
  }
  const top = new TopK(depth)
  for (const score of best) if (score > 0 && score > top.floor) top.push(0, score)
  // All that share the last place are taken, for ids to decide between them and not the order of slots.
  const last = Math.max(top.ranked().scores.at(-1) ?? 0, Number.MIN_VALUE)
  const candidates: Listed[] = []
  best.forEach((score, number) => {
    if (score < last) return
    const cell = table.at(slots[number] ?? 0)
    candidates.push({ memory: cell.memory, cell, score })
  })
  return candidates.sort(byScore).slice(0, depth)
}

/** The Memories of scored slots, each with its best Cell. */
export function listed(table: CellTable, slots: Uint32Array, scores: Float32Array): Listed[] {
  const best = new Map<MemoryEntry, Listed>()
  slots.forEach((slot, i) => {
    const cell = table.at(slot)
    const score = scores[i] ?? 0
    const known = best.get(cell.memory)
    if (!known || score > known.score || (score === known.score && cell.seq < known.cell.seq))
      best.set(cell.memory, { memory: cell.memory, cell, score })
  })
  return [...best.values()].sort(byScore)
}
