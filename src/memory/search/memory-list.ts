import type { CellTable } from './cell-table.ts'
import { type Ranked, TopK } from './top-k.ts'

/** Memories by number, best first and of equal scores by id, each with its best Cell, by slot, and that Cell's score. */
export interface MemoryList {
  numbers: Uint32Array
  slots: Uint32Array
  scores: Float32Array
}

interface Scored {
  /** By slot. */
  scores: Float32Array
  /** Those that have one. */
  slots: Uint32Array
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
  for (let i = 0; i < slots.length; i++) {
    const slot = slots[i] ?? 0
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
export function listRanked(table: CellTable, { slots: numbers, scores }: Ranked): MemoryList {
  const { slots } = table.passArrays()
  return { numbers, slots: numbers.map((number) => slots[number] ?? 0), scores }
}

/** The Memories of scored slots, which come best first or nearly so. */
export function listed(table: CellTable, slots: Uint32Array, scores: Float32Array): MemoryList {
  const { best: places } = table.passArrays()
  const { memoryAt } = table
  const list = { numbers: new Uint32Array(slots.length), slots: slots.slice(), scores: scores.slice() }
  let count = 0
  for (let i = 0; i < slots.length; i++) {
    const slot = slots[i] ?? 0
    const score = scores[i] ?? 0
    const number = memoryAt[slot] ?? 0
    const known = (places[number] ?? 0) - 1
    const before = list.scores[known] ?? 0
    if (
      known >= 0 &&
      (score < before || (score === before && table.at(slot).seq > table.at(list.slots[known] ?? 0).seq))
    ) {
      continue
    }
    const place = known < 0 ? count++ : known
    places[number] = place + 1
    list.numbers[place] = number
    list.slots[place] = slot
    list.scores[place] = score
  }
  for (let i = 0; i < count; i++) places[list.numbers[i] ?? 0] = 0
  return sorted(table, list, count)
}

/** The first `count` in order, by insertion: they nearly are. */
function sorted(table: CellTable, { numbers, slots, scores }: MemoryList, count: number): MemoryList {
  for (let i = 1; i < count; i++) {
    const [number = 0, slot = 0, score = 0] = [numbers[i], slots[i], scores[i]]
    let at = i
    for (; at > 0; at--) {
      const other = scores[at - 1] ?? 0
      if (other > score || (other === score && table.comesAfter(number, numbers[at - 1] ?? 0))) break
      numbers[at] = numbers[at - 1] ?? 0
      slots[at] = slots[at - 1] ?? 0
      scores[at] = other
    }
    numbers[at] = number
    slots[at] = slot
    scores[at] = score
  }
  return { numbers: numbers.subarray(0, count), slots: slots.subarray(0, count), scores: scores.subarray(0, count) }
}
