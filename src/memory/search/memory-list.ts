import type { CellEntry, CellTable, MemoryEntry } from './cell-table.ts'
import { type Ranked, TopK } from './top-k.ts'

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

interface Scored {
  /** By slot. */
  scores: Float32Array
  /** Those that have one. */
  slots: readonly number[]
  mask: Uint8Array | undefined
  depth: number
  /** At least `depth` Memories are known to score so much. */
  floor: number
}

/** The `depth` Memories whose best Cell scores highest, by number. */
export function rankMemories(table: CellTable, { scores, slots, mask, depth, floor }: Scored): TopK {
  const { best, slots: bestSlots, numbers } = table.passArrays()
  const { memoryAt } = table
  let count = 0
  for (const slot of slots) {
    const score = scores[slot] ?? 0
    if (score < floor || (mask && mask[slot] !== 1)) continue
    const number = memoryAt[slot] ?? 0
    const known = best[number] ?? 0
    if (score < known || (score === known && table.at(slot).seq > table.at(bestSlots[number] ?? 0).seq)) continue
    if (known === 0) numbers[count++] = number
    best[number] = score
    bestSlots[number] = slot
  }
  const top = new TopK(depth, (a, b) => table.comesAfter(a, b))
  for (let i = 0; i < count; i++) {
    const number = numbers[i] ?? 0
    const score = best[number] ?? 0
    best[number] = 0
    if (score >= top.floor) top.push(number, score)
  }
  return top
}

/** What `rankMemories` gave last, each with its best Cell. */
export function listRanked(table: CellTable, { slots: numbers, scores }: Ranked): Listed[] {
  const { slots } = table.passArrays()
  const list: Listed[] = []
  for (let i = 0; i < numbers.length; i++) {
    const cell = table.at(slots[numbers[i] ?? 0] ?? 0)
    list.push({ memory: cell.memory, cell, score: scores[i] ?? 0 })
  }
  return list
}

/** The Memories of scored slots, each with its best Cell. */
export function listed(table: CellTable, slots: Uint32Array, scores: Float32Array): Listed[] {
  const { best: places } = table.passArrays()
  const list: Listed[] = []
  for (let i = 0; i < slots.length; i++) {
    const cell = table.at(slots[i] ?? 0)
    const { memory } = cell
    const score = scores[i] ?? 0
    const known = list[(places[memory.number] ?? 0) - 1]
    if (!known) places[memory.number] = list.push({ memory, cell, score })
    else if (score > known.score || (score === known.score && cell.seq < known.cell.seq))
      Object.assign(known, { cell, score })
  }
  for (const { memory } of list) places[memory.number] = 0
  return list.sort(byScore)
}
