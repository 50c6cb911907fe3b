import type { CellTable, MemoryEntry } from './cell-table.ts'
import type { Codes } from './codes.ts'
import type { KeywordScores } from './keyword-scores.ts'
import { listed, type MemoryList } from './memory-list.ts'

/** What one way of searching says: a list of the best Memories, and the score of any Cell. */
export interface Signal {
  list: MemoryList
  /** No Cell of a Memory outside the list, and none of those in it but for the one listed, scores higher. */
  rest: number
  /** Scores of these slots in their order; -Infinity where there is none. */
  scoresAt: (slots: Uint32Array) => Float32Array
  /** Of scores that a database holds: brings those of all Cells of these Memories here. Without it `scoresAt` lacks them. */
  gather?: (memories: readonly MemoryEntry[]) => Promise<void>
}

export interface Signals {
  keyword: Signal
  vector: Signal
  /** Of the vector signal, beside 1 of the other. */
  fusionWeight: number
}

/** BM25 as a signal. */
export const keywordSignal = (scores: KeywordScores): Signal => ({
  list: scores.list,
  rest: scores.rest,
  scoresAt: (slots) => Float32Array.from(slots, (slot) => scores.at(slot) || -Infinity),
})

/** Gives the exact cosines of Cells; absent where a Cell has no vector. */
export type Rescore = (query: Float32Array, cellNos: readonly number[]) => Promise<ReadonlyMap<number, number>>

/**
 * Cosines over the codes. The first `exact` Cells are scored again with their vectors. The list holds at least `exact / 4`
 * Memories where there are so many, however many Cells the best ones have.
 */
export async function vectorSignal(
  table: CellTable,
  codes: Codes,
  query: Float32Array,
  mask: Uint8Array | undefined,
  { depth, exact, rescore }: { depth: number; exact: number; rescore: Rescore | undefined },
): Promise<Signal> {
  let { slots, scores } = codes.top(query, depth, mask)
  for (let n = depth; slots.length === n && !areOf(table, slots, exact / 4);) {
    n *= 4
    ;({ slots, scores } = codes.top(query, n, mask))
  }
  const rest = slots.length < depth ? -Infinity : (scores.at(-1) ?? -Infinity)
  const first = slots.subarray(0, exact)
  const cellNos: number[] = []
  for (let i = 0; i < first.length; i++) cellNos.push(table.at(first[i] ?? 0).cellNo)
  const exactly = await rescore?.(query, cellNos)
  for (let i = 0; i < cellNos.length; i++) scores[i] = exactly?.get(cellNos[i] ?? 0) ?? scores[i] ?? 0
  return {
    list: listed(table, slots, scores),
    rest,
    scoresAt: (asked) => {
      const found = codes.scoreAt(asked, query)
      for (let i = 0; i < asked.length; i++) {
        const place = first.indexOf(asked[i] ?? 0)
        if (place >= 0) found[i] = scores[place] ?? 0
      }
      return found
    },
  }
}

/** Whether the Cells at these slots are of at least so many Memories. */
function areOf({ memoryAt }: CellTable, slots: Uint32Array, wanted: number): boolean {
  const memories = new Set<number>()
  for (let i = 0; i < slots.length; i++) if (memories.add(memoryAt[slots[i] ?? 0] ?? 0).size >= wanted) return true
  return false
}
