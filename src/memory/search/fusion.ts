import type { CellEntry, CellTable, MemoryEntry } from './cell-table.ts'
import { type Surroundings, surroundings, withScoresAround, withTermsAround } from './context.ts'
import type { KeywordScores } from './keyword-scores.ts'
import type { LexicalIndex, QueryTerm } from './lexical.ts'
import type { MemoryList } from './memory-list.ts'
import type { Signal, Signals } from './signals.ts'
import { TopK } from './top-k.ts'
import type { ScoreParts } from './types.ts'

export interface Fused {
  memory: MemoryEntry
  /** In [0, 1] unless the caller's weights make it more. */
  score: number
  parts?: ScoreParts
}

/** The k best of one list alone. */
export const asFused = (table: CellTable, { numbers, scores }: MemoryList, k: number): Fused[] =>
  Array.from(numbers.subarray(0, k), (number, i) => ({ memory: table.memoryNumbered(number), score: scores[i] ?? 0 }))

/** The caller's weights: both lists min-max-normalised, absent = 0. Contract: memory.md 4.2. */
export function fuseWeighted(
  table: CellTable,
  { keyword, vector }: Signals,
  weights: { keyword: number; vector: number },
): Fused[] {
  const sums = new Map<number, number>()
  const add = ({ numbers, scores }: MemoryList, weight: number): void => {
    const toScale = minMax(scores)
    numbers.forEach((number, i) => sums.set(number, (sums.get(number) ?? 0) + weight * toScale(scores[i] ?? 0)))
  }
  add(keyword.list, weights.keyword)
  add(vector.list, weights.vector)
  return [...sums]
    .map(([number, score]) => ({ memory: table.memoryNumbered(number), score }))
    .sort((a, b) => b.score - a.score || (a.memory.id < b.memory.id ? -1 : 1))
}

/** From 0 for the last score of a list to 1 for the first; of all equal scores each is 1, and what is below the last is 0. */
function minMax(scores: Float32Array): (score: number) => number {
  const most = scores[0] ?? Infinity
  const lowest = scores.at(-1) ?? -Infinity
  const range = most - lowest
  return (score) => (range > 0 ? Math.max(0, (score - lowest) / range) : score >= most ? 1 : 0)
}

/** What being said by whom the query asks for adds, beside 1 for the best keyword score. */
const SPEAKER_SHARE = 0.4
/** What is left out by a bound must be below it by more than 32 bits round off. */
const ROUNDING = 1e-5
/** Terms that count in context: the most telling ones of a long query. */
const CONTEXT_TERMS = 32

/** What the default fusion reads besides the two lists. */
export interface Context {
  table: CellTable
  lexical: LexicalIndex
  terms: readonly QueryTerm[]
  /** BM25 by slot. */
  bm25: KeywordScores
  coherence: (stream: MemoryEntry[]) => number
  /** Whether the filter lets a Memory take part. */
  passes: (memory: MemoryEntry) => boolean
  /** Whether a Memory is said by whom the query asks for; absent where nobody speaks. */
  spokenAsAsked: ((memory: MemoryEntry) => boolean) | undefined
}

/**
 * The default fusion: BM25 and cosine of a Memory, each with what the Memories around lend, scaled by the highest and added;
 * more for what was said by whom the query asks for. The best one scores 1. The k best. Contract: memory.md 4.2.
 */
export async function fuseWithContext(
  { keyword, vector, fusionWeight }: Signals,
  context: Context,
  k: number,
): Promise<readonly Fused[]> {
  const { table, spokenAsAsked } = context
  const { found, scaled } = findMemories(table, keyword.list, vector)
  const isAlone = areAlone(found, context)
  // Memories that stand alone stay numbers, but for those few that are looked at.
  const scene = isAlone && scaled ? undefined : surroundings(entriesOf(table, found), context.coherence, context.passes)
  if (scene) await vector.gather?.(scene.memories)
  const memoryAt = (i: number): MemoryEntry => scene?.memories[i] ?? table.memoryNumbered(found[i] ?? 0)
  const words = scene && !isAlone ? keywordScores(scene, context) : listedScores(found.length, keyword)
  const ownCosines = scene ? cosines(scene, vector) : (scaled ?? new Float32Array(found.length))
  const meaning = { own: ownCosines, all: scene ? withScoresAround(scene, ownCosines) : ownCosines }
  const [mostWords, mostMeaning] = [highest(words.all), highest(meaning.all) / fusionWeight]
  const speaker = (i: number): number => (spokenAsAsked?.(memoryAt(i)) ? SPEAKER_SHARE : 0)
  const best = new TopK(k, (a, b) => memoryAt(a).id > memoryAt(b).id)
  for (let i = 0; i < words.all.length; i++) {
    const others = (meaning.all[i] ?? 0) / mostMeaning + speaker(i)
    if (isAlone && i >= keyword.list.numbers.length) {
      if ((words.all[i] ?? 0) / mostWords + others < best.floor - ROUNDING) continue
      words.all[i] = context.bm25.at(bestSlot(memoryAt(i).cells, context.bm25))
    }
    const sum = Math.fround((words.all[i] ?? 0) / mostWords + others)
    if (sum >= best.floor && (sum > 0 || i < found.length)) best.push(i, sum)
  }
  const { slots: places, scores } = best.ranked()
  const most = highest(scores)
  const ownOf = ({ own }: typeof words, i: number): number => own[i] ?? 0
  const lentOf = ({ own, all }: typeof words, i: number): number => (all[i] ?? 0) - (own[i] ?? 0)
  return Array.from(places, (i, rank) => ({
    memory: memoryAt(i),
    score: (scores[rank] ?? 0) / most,
    parts: {
      words: ownOf(words, i) / mostWords / most,
      wordsAround: lentOf(words, i) / mostWords / most,
      meaning: ownOf(meaning, i) / mostMeaning / most,
      meaningAround: lentOf(meaning, i) / mostMeaning / most,
      speaker: speaker(i) / most,
    },
  }))
}

/** Whether none of the Memories has anything to do with those around it. Most are of one collection. */
function areAlone(found: Uint32Array, { table, coherence }: Context): boolean {
  let known: MemoryEntry[] | undefined
  for (let i = 0; i < found.length; i++) {
    const stream = table.streamOf(found[i] ?? 0)
    if (stream !== known && coherence(stream) !== 0) return false
    known = stream
  }
  return true
}

/**
 * The Memories of both lists, those of `keywords` first; with their cosines, min-max-scaled, where the list of cosines tells
 * them all.
 */
function findMemories(
  table: CellTable,
  { numbers: keywords }: MemoryList,
  { list, rest }: Signal,
): { found: Uint32Array; scaled: Float32Array | undefined } {
  const { best: places } = table.passArrays()
  const toScale = minMax(list.scores)
  const found = new Uint32Array(keywords.length + list.numbers.length)
  const scaled = new Float32Array(found.length)
  found.set(keywords)
  let count = keywords.length
  for (let i = 0; i < count; i++) places[found[i] ?? 0] = i + 1
  for (let i = 0; i < list.numbers.length; i++) {
    const number = list.numbers[i] ?? 0
    const known = places[number] ?? 0
    const place = known > 0 ? known - 1 : count++
    found[place] = number
    scaled[place] = toScale(list.scores[i] ?? 0)
  }
  for (let i = 0; i < keywords.length; i++) places[found[i] ?? 0] = 0
  return { found: found.subarray(0, count), scaled: toScale(rest) > 0 ? undefined : scaled }
}

const entriesOf = (table: CellTable, numbers: Uint32Array): MemoryEntry[] =>
  Array.from(numbers, (number) => table.memoryNumbered(number))

/** Scores of the Memories in the list, and of the others behind them the most that they can have. */
function listedScores(count: number, { list, rest }: Signal): { own: Float32Array; all: Float32Array } {
  const all = new Float32Array(count).fill(rest)
  all.set(list.scores)
  return { own: all, all }
}

/** Of the best Cell of each Memory, its own and with what those around lend. */
function keywordScores(
  scene: Surroundings,
  { lexical, terms, bm25 }: Context,
): { own: Float32Array; all: Float32Array } {
  const slots = new Uint32Array(scene.memories.length)
  const totals = new Float32Array(scene.memories.length)
  scene.memories.forEach(({ cells }, i) => {
    const slot = bestSlot(cells, bm25)
    slots[i] = slot
    totals[i] = bm25.at(slot)
  })
  const telling = terms.slice(0, CONTEXT_TERMS)
  return { own: totals, all: withTermsAround(scene, totals, lexical.shares(telling, slots), telling.length) }
}

function bestSlot(cells: readonly CellEntry[], bm25: KeywordScores): number {
  let best = cells[0]?.slot ?? 0
  for (const { slot } of cells) if (bm25.at(slot) > bm25.at(best)) best = slot
  return best
}

/** Of the best Cell of each Memory, min-max-scaled. */
function cosines({ memories }: Surroundings, { list, scoresAt }: Signal): Float32Array {
  const best = new Float32Array(memories.length)
  if (list.numbers.length === 0) return best
  const cells = memories.reduce((sum, memory) => sum + memory.cells.length, 0)
  const slots = new Uint32Array(cells)
  const owners = new Uint32Array(cells)
  let next = 0
  memories.forEach((memory, index) => {
    for (const { slot } of memory.cells) {
      slots[next] = slot
      owners[next++] = index
    }
  })
  const toScale = minMax(list.scores)
  scoresAt(slots).forEach((score, i) => {
    const owner = owners[i] ?? 0
    best[owner] = Math.max(best[owner] ?? 0, toScale(score))
  })
  return best
}

/** What makes the best score 1; 1 where there is none. */
function highest(scores: Float32Array): number {
  let most = 0
  for (let i = 0; i < scores.length; i++) most = Math.max(most, scores[i] ?? 0)
  return most || 1
}

/**
 * What each signal says of Cells, 0 = nothing. Of two signals each counts by its weight and as a share of its highest score,
 * 1 in all; a single one speaks in its own scale.
 */
export function scaledScores(cells: readonly CellEntry[], { keyword, vector, fusionWeight }: Signals): Float32Array[] {
  const slots = Uint32Array.from(cells, ({ slot }) => slot)
  const heard = [
    { signal: keyword, weight: 1 },
    { signal: vector, weight: fusionWeight },
  ].filter(({ signal }) => (signal.list.scores[0] ?? 0) > 0)
  return heard.map(({ signal, weight }) => {
    const share = heard.length === 1 ? 1 : weight / (1 + fusionWeight) / (signal.list.scores[0] ?? 1)
    return signal.scoresAt(slots).map((score) => share * Math.max(0, score))
  })
}
