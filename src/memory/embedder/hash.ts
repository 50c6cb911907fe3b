import { contentWords, splitIdentifiers, words } from '../search/analysis.ts'
import { detached } from '../search/detached.ts'
import { stem } from '../search/stemmer.ts'

export const HASH_MODEL = 'hash:default'
export const HASH_DIMENSION = 1024

/** How much its cosines count beside BM25: both see words only. From 0.1 to 0.3 measured recall hardly differs. */
export const HASH_FUSION_WEIGHT = 0.15

/**
 * `hash:default`: stems, pairs of stems and character 3- to 5-grams hashed with signs into 1024 values, counts damped by a
 * logarithm, unit length; a text without words gives the zero vector. It is lexical: it finds shared parts of words, not
 * meaning. Frozen under its name: same text, same values, on every platform. Contract: memory.md 6.1.
 */
export function embedDocument(text: string): Float32Array {
  return embed(text, () => 1)
}

/**
 * The query side: each word also weighs by the inverse document frequency of its stem, a pair by the mean of its two, so
 * that document vectors never go stale.
 */
export function embedQuery(text: string, idf: (stem: string) => number): Float32Array {
  return embed(text, idf)
}

const PAIR_WEIGHT = 0.25
/** Of all grams of a word together, against 1 for its stem. */
const GRAM_WEIGHT = 1.5
const MEMO_LIMIT = 50_000

/** What a word adds to a vector: at the first place the weight of its stem, at the others that of a gram; less at `~place`. */
interface Word {
  stem: string
  hash: number
  /** A plain list: of typed arrays so small, the making and the collecting cost more than the words themselves. */
  places: readonly number[]
  gramWeight: number
}

const memo = new Map<string, Word>()
/** What the text at hand comes to: 8 KB that need not be made anew. */
const total = new Float64Array(HASH_DIMENSION)

function embed(text: string, idf: (stem: string) => number): Float32Array {
  total.fill(0)
  const sequence = contentWords(words(splitIdentifiers(text))).map(wordOf)
  for (const [word, count] of counted(sequence)) {
    const factor = damped(count) * idf(word.stem)
    const { places } = word
    addTo(places[0] ?? 0, factor)
    const share = factor * word.gramWeight
    for (let i = 1; i < places.length; i++) addTo(places[i] ?? 0, share)
  }
  for (const [hash, { count, weight }] of pairsOf(sequence, idf)) {
    addTo(placeOf(hash), PAIR_WEIGHT * damped(count) * weight)
  }
  return unit()
}

function wordOf(word: string): Word {
  let known = memo.get(word)
  if (!known) {
    if (memo.size >= MEMO_LIMIT) memo.clear()
    known = features(word)
    memo.set(detached(word), known)
  }
  return known
}

/** Plain loops and no string a gram: with these a text of 20 new words took 95 µs, not 62. */
function features(word: string): Word {
  const stemmed = stem(word)
  const hash = mixed(added(OF_WORD, stemmed))
  const places = [placeOf(hash)]
  const framed = `^${word}$`
  for (let length = 3; length <= 5; length++) {
    for (let at = 0; at + length <= framed.length; at++) {
      places.push(placeOf(mixed(added(OF_GRAM, framed, at, at + length))))
    }
  }
  return { stem: stemmed, hash, places, gramWeight: GRAM_WEIGHT / Math.sqrt(places.length - 1) }
}

function counted(sequence: readonly Word[]): Map<Word, number> {
  const counts = new Map<Word, number>()
  for (const word of sequence) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** By hash of the pair: how often, and the mean idf of its stems. */
function pairsOf(
  sequence: readonly Word[],
  idf: (stem: string) => number,
): Map<number, { count: number; weight: number }> {
  const pairs = new Map<number, { count: number; weight: number }>()
  let before: Word | undefined
  for (const word of sequence) {
    if (before) {
      const hash = mixed(Math.imul(before.hash, 31) ^ word.hash)
      const pair = pairs.get(hash)
      if (pair) pair.count++
      else pairs.set(hash, { count: 1, weight: (idf(before.stem) + idf(word.stem)) / 2 })
    }
    before = word
  }
  return pairs
}

const damped = (count: number): number => 1 + Math.log(count)
/** `~place` where the sign is minus. */
const placeOf = (hash: number): number => ((hash >>> 16) & 1 ? hash % HASH_DIMENSION : ~(hash % HASH_DIMENSION))

function addTo(place: number, value: number): void {
  if (place >= 0) total[place] = (total[place] ?? 0) + value
  else total[~place] = (total[~place] ?? 0) - value
}

/** FNV-1a over UTF-16 units goes on from `hash`; it is to be mixed, because neither its low nor its high bits are even. */
function added(hash: number, text: string, start = 0, end = text.length): number {
  let sum = hash
  for (let i = start; i < end; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193)
  return sum
}

const OF_WORD = added(0x811c9dc5, 'word ')
const OF_GRAM = added(0x811c9dc5, 'gram ')

function mixed(value: number): number {
  let hash = value ^ (value >>> 15)
  hash = Math.imul(hash, 0x2c1b3c6d)
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** Plain loops: with `reduce` and `from` a text of 27 words took 88 µs, not 25. */
function unit(): Float32Array {
  const vector = new Float32Array(HASH_DIMENSION)
  let squares = 0
  for (let i = 0; i < HASH_DIMENSION; i++) squares += (total[i] ?? 0) * (total[i] ?? 0)
  if (squares === 0) return vector
  const factor = 1 / Math.sqrt(squares)
  for (let i = 0; i < HASH_DIMENSION; i++) vector[i] = (total[i] ?? 0) * factor
  return vector
}
