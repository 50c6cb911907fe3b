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

/** The first `count` in that order. Most of many are worse than all of few: each of these is compared once. */
export function firstByScore<T extends { memory: MemoryEntry; score: number }>(
  items: readonly T[],
  count: number,
): T[] {
  const first: T[] = []
  for (const item of items) {
    const last = first[count - 1]
    if (last && byScore(last, item) < 0) continue
    let low = 0
    let high = first.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = first[middle]
      if (other && byScore(other, item) < 0) low = middle + 1
      else high = middle
    }
    first.splice(low, 0, item)
    if (last) first.pop()
  }
  return first
}

interface Scored {
  /** By slot. */
  scores: Float32Array
  /** Those that have one. */
  slots: readonly number[]
  mask: Uint8Array | undefined
  depth: number
}

/** The `depth` Memories whose best Cell scores highest. */
export function listByScores(table: CellTable, { scores, slots, mask, depth }: Scored): Listed[] {
  const { best, slots: bestSlots } = table.passArrays()
  const { memoryAt } = table
  const numbers: number[] = []
  for (const slot of slots) {
    if (mask && mask[slot] !== 1) continue
    const score = scores[slot] ?? 0
    const number = memoryAt[slot] ?? 0
    const known = best[number] ?? 0
    if (score < known || (score === known && table.at(slot).seq > table.at(bestSlots[number] ?? 0).seq)) continue
    if (known === 0) numbers.push(number)
    best[number] = score
    bestSlots[number] = slot
  }
  const top = new TopK(depth)
  for (const number of numbers) {
    const score = best[number] ?? 0
    if (score > top.floor) top.push(number, score)
  }
  // All that share the last place are taken, for ids to decide between them and not the order of slots.
  const candidates: Listed[] = []
  for (const number of numbers) {
    const score = best[number] ?? 0
    best[number] = 0
    if (score < top.worst) continue
    const cell = table.at(bestSlots[number] ?? 0)
    candidates.push({ memory: cell.memory, cell, score })
  }
  return firstByScore(candidates, depth)
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
