import type { CellEntry, MemoryEntry } from './cell-table.ts'
import { type Fused, scaledScores } from './fusion.ts'
import type { Signal, Signals } from './signals.ts'
import type { SearchHit } from './types.ts'

const CELLS_PER_HIT = 10

/**
 * Ranked Memories as hits. The Cell shown is the best one of the list that ranks the Memory higher, of the vector list when
 * both do alike. Contract: memory.md 4.3.
 */
export function hitsOf(ranked: readonly Fused[], signals: Signals, includeCells: boolean): SearchHit[] {
  return ranked.map(({ memory, score, parts }) => {
    const keyword = placeIn(signals.keyword, memory) ?? unlisted(signals.keyword, memory)
    const vector = placeIn(signals.vector, memory) ?? unlisted(signals.vector, memory)
    const shown = (keyword?.rank ?? Infinity) < (vector?.rank ?? Infinity) ? keyword : (vector ?? keyword)
    return {
      memoryId: memory.id,
      cellNo: (shown?.cell ?? memory.cells[0])?.cellNo ?? 0,
      score,
      ...(parts && { parts }),
      ...(vector && { vectorScore: vector.score }),
      ...(keyword && { keywordScore: keyword.score }),
      ...(includeCells && { cells: bestCells(memory, signals) }),
    }
  })
}

interface Place {
  cell: CellEntry
  score: number
  rank: number
}

function placeIn({ list }: Signal, memory: MemoryEntry): Place | undefined {
  const rank = list.findIndex((listed) => listed.memory === memory)
  const found = list[rank]
  return found && { cell: found.cell, score: found.score, rank }
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
