import { type MemoryEntry, position } from './cell-table.ts'

/** How much of a query term's score in a Memory counts for the Memories one, two and three places from it. */
const TERM_SHARES = [0.6, 0.4, 0.2]
/** The same for cosines, which add up where terms count once. */
const COSINE_SHARES = [0.3, 0.1]
const REACH = TERM_SHARES.length

/** Memories to be scored and, after them, those that only lend to them. */
export interface Surroundings {
  memories: readonly MemoryEntry[]
  /** How many of them are to be scored. */
  scored: number
  /** For each Memory to be scored: the places in `memories` of those around it. Empty where no stream holds together. */
  around: readonly Neighbour[][]
}

interface Neighbour {
  index: number
  /** In Memories, from 1. */
  distance: number
  /** How far the stream holds together, from 0 to 1. */
  coherence: number
}

const NO_NEIGHBOURS: Neighbour[] = []

/**
 * The Memories found, those next to them, and all that lend to any of these.
 * @param coherenceOf of a stream; where it is 0 Memories stand alone
 * @param passes whether a Memory passes the filter; the others neither score nor lend
 */
export function surroundings(
  found: readonly MemoryEntry[],
  coherenceOf: (stream: MemoryEntry[]) => number,
  passes: (memory: MemoryEntry) => boolean,
): Surroundings {
  let alone: MemoryEntry[] | undefined
  const standsAlone = ({ stream }: MemoryEntry): boolean => {
    if (stream !== alone && coherenceOf(stream) === 0) alone = stream
    return stream === alone
  }
  if (found.every(standsAlone)) return { memories: found, scored: found.length, around: [] }
  const memories = [...found]
  /** Places in the stream, where they are known: to find one takes a search. */
  const places: (number | undefined)[] = []
  const indexes = new Map(memories.map((memory, index) => [memory, index]))
  const include = (memory: MemoryEntry, at: number): number => {
    const index = indexes.get(memory) ?? memories.length
    if (index === memories.length) {
      indexes.set(memory, index)
      memories.push(memory)
    }
    places[index] = at
    return index
  }
  /** The others around one included, up to `reach` places away. */
  const near = (index: number, reach: number): Neighbour[] => {
    const memory = memories[index]
    const coherence = memory ? coherenceOf(memory.stream) : 0
    if (!memory || coherence === 0) return NO_NEIGHBOURS
    const { stream } = memory
    const at = (places[index] ??= position(memory))
    const neighbours: Neighbour[] = []
    for (let place = Math.max(0, at - reach); place <= at + reach; place++) {
      const other = stream[place]
      if (!other || place === at || !passes(other)) continue
      neighbours.push({ index: include(other, place), distance: Math.abs(place - at), coherence })
    }
    return neighbours
  }
  const direct = memories.length
  for (let index = 0; index < direct; index++) near(index, 1)
  const scored = memories.length
  const around = Array.from({ length: scored }, (_, index) => near(index, REACH))
  return { memories, scored, around }
}

/**
 * BM25 with context: a query term counts as much as it does in the Memory, or as its share in one around it, if that is
 * more. So a Memory that says one half of what is asked, next to one that says the other, says it all.
 * @param totals BM25 of each Memory
 * @param shares what each of the terms adds to it: a row a Memory
 */
export function withTermsAround(
  { scored, around }: Surroundings,
  totals: Float32Array,
  shares: Float32Array,
  terms: number,
): Float32Array {
  const lent = new Float32Array(terms)
  return totals.slice(0, scored).map((total, i) => {
    lent.set(shares.subarray(i * terms, (i + 1) * terms))
    let gained = total
    for (const { index, distance, coherence } of around[i] ?? []) {
      const share = coherence * (TERM_SHARES[distance - 1] ?? 0)
      for (let term = 0; term < terms; term++) {
        const gain = share * (shares[index * terms + term] ?? 0) - (lent[term] ?? 0)
        if (gain <= 0) continue
        gained += gain
        lent[term] = (lent[term] ?? 0) + gain
      }
    }
    return gained
  })
}

/** Scores with a share of those around them. */
export function withScoresAround({ scored, around }: Surroundings, scores: Float32Array): Float32Array {
  if (around.length === 0) return scores
  return scores.slice(0, scored).map((score, i) => {
    let sum = score
    for (const { index, distance, coherence } of around[i] ?? []) {
      sum += coherence * (COSINE_SHARES[distance - 1] ?? 0) * (scores[index] ?? 0)
    }
    return sum
  })
}
