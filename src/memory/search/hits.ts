import type { CellEntry, CellTable, MemoryEntry } from './cell-table.ts'
import { type Fused, scaledScores } from './fusion.ts'
import type { Signal, Signals } from './signals.ts'
import type { SearchHit } from './types.ts'

const CELLS_PER_HIT = 10

/**
 * Ranked Memories as hits. The Cell shown is the best one of the list that ranks the Memory higher, of the vector list when
 * both do alike. Contract: memory.md 4.3.
 */
export function hitsOf(
  table: CellTable,
  ranked: readonly Fused[],
  signals: Signals,
  includeCells: boolean,
): SearchHit[] {
  return ranked.map(({ memory, score, parts }) => {
    const keyword = placeIn(table, signals.keyword, memory) ?? unlisted(signals.keyword, memory)
    const vector = placeIn(table, signals.vector, memory) ?? unlisted(signals.vector, memory)
    const shown = (keyword?.rank ?? Infinity) < (vector?.rank ?? Infinity) ? keyword : (vector ?? keyword)
    return {
      memoryId: memory.id,
      cellNo: (shown?.cell ?? memory.cells[0])?.cellNo ?? 0,
      score,
      parts,
      vectorScore: vector?.score,
      keywordScore: keyword?.score,
      cells: includeCells ? bestCells(memory, signals) : undefined,
    }
  })
}

interface Place {
  cell: CellEntry
  score: number
  rank: number
}

function placeIn(table: CellTable, { list }: Signal, { number }: MemoryEntry): Place | undefined {
  const rank = list.numbers.indexOf(number)
  return rank < 0 ? undefined : { cell: table.at(list.slots[rank] ?? 0), score: list.scores[rank] ?? 0, rank }
}

/** Of a Memory that the other list or its neighbours brought in: its best Cell all the same. */
function unlisted({ scoresAt }: Signal, { cells }: MemoryEntry): Place | undefined {
  const scores = scoresAt(Uint32Array.from(cells, ({ slot }) => slot))
  let best: Place | undefined
  cells.forEach((cell, i) => {
    const score = scores[i] ?? -Infinity
    if (score > (best?.score ?? -Infinity)) best = { cell, score, rank: Infinity }
  })
  return best
}

function bestCells({ cells }: MemoryEntry, signals: Signals): NonNullable<SearchHit['cells']> {
  const scores = scaledScores(cells, signals)
  return cells
    .map(({ cellNo, seq }, i) => ({ cellNo, seq, score: scores.reduce((sum, each) => sum + (each[i] ?? 0), 0) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.seq - b.seq)
    .slice(0, CELLS_PER_HIT)
}
