import type { CellEntry, CellTable, MemoryEntry } from './cell-table.ts'
import { type Surroundings, surroundings, withScoresAround, withTermsAround } from './context.ts'
import type { KeywordScores } from './keyword-scores.ts'
import type { LexicalIndex, QueryTerm } from './lexical.ts'
import { byScore, type Listed } from './memory-list.ts'
import type { Signal, Signals } from './signals.ts'
import { TopK } from './top-k.ts'
import type { ScoreParts } from './types.ts'

export interface Fused {
  memory: MemoryEntry
  /** In [0, 1] unless the caller's weights make it more. */
  score: number
  parts?: ScoreParts
}

/** The caller's weights: both lists min-max-normalised, absent = 0. Contract: memory.md 4.2. */
export function fuseWeighted({ keyword, vector }: Signals, weights: { keyword: number; vector: number }): Fused[] {
  const sums = new Map<MemoryEntry, number>()
  const add = (list: readonly Listed[], weight: number): void => {
    const toScale = minMax(list)
    for (const { memory, score } of list) sums.set(memory, (sums.get(memory) ?? 0) + weight * toScale(score))
  }
  add(keyword.list, weights.keyword)
  add(vector.list, weights.vector)
  return [...sums].map(([memory, score]) => ({ memory, score })).sort(byScore)
}

/** From 0 for the last score of a list to 1 for the first; of all equal scores each is 1, and what is below the last is 0. */
function minMax(list: readonly Listed[]): (score: number) => number {
  const highest = list[0]?.score ?? Infinity
  const lowest = list.at(-1)?.score ?? -Infinity
  const range = highest - lowest
  return (score) => (range > 0 ? Math.max(0, (score - lowest) / range) : score >= highest ? 1 : 0)
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
  /** Whether a Memory is said by whom the query asks for. */
  spokenAsAsked: (memory: MemoryEntry) => boolean
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
  const { found, scaled } = findMemories(context.table, keyword.list, vector)
  const scene = surroundings(found, context.coherence, context.passes)
  await vector.gather?.(scene.memories)
  const { memories } = scene
  const isAlone = scene.around.length === 0
  const words = isAlone ? listedScores(found, keyword) : keywordScores(scene, context)
  const ownCosines = isAlone && scaled ? scaled : cosines(scene, vector)
  const meaning = { own: ownCosines, all: withScoresAround(scene, ownCosines) }
  const [mostWords, mostMeaning] = [highest(words.all), highest(meaning.all) / fusionWeight]
  const speaker = (memory: MemoryEntry): number => (context.spokenAsAsked(memory) ? SPEAKER_SHARE : 0)
  const best = new TopK(k, (a, b) => (memories[a]?.id ?? '') > (memories[b]?.id ?? ''))
  for (let i = 0; i < scene.scored; i++) {
    const memory = memories[i]
    if (!memory) continue
    const others = (meaning.all[i] ?? 0) / mostMeaning + speaker(memory)
    if (isAlone && i >= keyword.list.length) {
      if ((words.all[i] ?? 0) / mostWords + others < best.floor - ROUNDING) continue
      words.all[i] = context.bm25.at(bestSlot(memory.cells, context.bm25))
    }
    const sum = Math.fround((words.all[i] ?? 0) / mostWords + others)
    if (sum >= best.floor && (sum > 0 || i < found.length)) best.push(i, sum)
  }
  const { slots: places, scores } = best.ranked()
  const most = highest(scores)
  /** Its own and what is lent, of one signal. */
  const split = ({ own, all }: typeof words, i: number, top: number): [number, number] => [
    (own[i] ?? 0) / top / most,
    ((all[i] ?? 0) - (own[i] ?? 0)) / top / most,
  ]
  return Array.from(places).flatMap((i, rank) => {
    const memory = memories[i]
    if (!memory) return []
    const [ownWords, wordsAround] = split(words, i, mostWords)
    const [ownMeaning, meaningAround] = split(meaning, i, mostMeaning)
    const parts = { words: ownWords, wordsAround, meaning: ownMeaning, meaningAround }
    return { memory, score: (scores[rank] ?? 0) / most, parts: { ...parts, speaker: speaker(memory) / most } }
  })
}

/**
 * The Memories of both lists, those of `keywords` first; with their cosines, min-max-scaled, where the list of cosines tells
 * them all.
 */
function findMemories(
  table: CellTable,
  keywords: readonly Listed[],
  { list, rest }: Signal,
): { found: MemoryEntry[]; scaled: Float32Array | undefined } {
  const { best: places } = table.passArrays()
  const toScale = minMax(list)
  const scaled = new Float32Array(keywords.length + list.length)
  const found = keywords.map(({ memory }) => memory)
  found.forEach(({ number }, i) => (places[number] = i + 1))
  for (const { memory, score } of list) {
    const known = places[memory.number] ?? 0
    const place = known > 0 ? known : found.push(memory)
    scaled[place - 1] = toScale(score)
  }
  for (const { number } of found) places[number] = 0
  return { found, scaled: toScale(rest) > 0 ? undefined : scaled }
}

/** Scores of the Memories in the list, and of the others behind them the most that they can have. */
function listedScores(found: readonly MemoryEntry[], { list, rest }: Signal): { own: Float32Array; all: Float32Array } {
  const all = Float32Array.from(found, (_, i) => list[i]?.score ?? rest)
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
  if (list.length === 0) return best
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
  const toScale = minMax(list)
  scoresAt(slots).forEach((score, i) => {
    const owner = owners[i] ?? 0
    best[owner] = Math.max(best[owner] ?? 0, toScale(score))
  })
  return best
}

/** What makes the best score 1; 1 where there is none. */
const highest = (scores: Float32Array): number => scores.reduce((a, b) => Math.max(a, b), 0) || 1

/**
 * What each signal says of Cells, 0 = nothing. Of two signals each counts by its weight and as a share of its highest score,
 * 1 in all; a single one speaks in its own scale.
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
