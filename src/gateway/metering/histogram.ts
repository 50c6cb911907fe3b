/**
 * Histograms over logarithmic buckets: each is a tenth wider than the one below, so that what a bucket stands for is
 * within 4.8 % of all that fell into it. Values are milliseconds. Contract: gateway.md 2.8.
 */

const GROWTH = Math.log(1.1)
/** Below a microsecond all is nothing. */
const LOWEST = -73
const HIGHEST = 200

/** How many fell into each bucket, by its number. */
export type Histogram = Map<number, number>

export function addTime(histogram: Histogram, ms: number): void {
  const bucket = ms > 0 ? Math.max(LOWEST, Math.min(HIGHEST, Math.ceil(Math.log(ms) / GROWTH))) : LOWEST
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + 1)
}

export function addHistogram(to: Histogram, from: Histogram): void {
  for (const [bucket, count] of from) to.set(bucket, (to.get(bucket) ?? 0) + count)
}

/** The value at or below which a share of all lies; null without any. */
export function percentile(histogram: Histogram, share: number): number | null {
  let total = 0
  for (const count of histogram.values()) total += count
  if (total === 0) return null
  const rank = Math.ceil(share * total)
  let seen = 0
  for (const bucket of [...histogram.keys()].sort((a, b) => a - b)) {
    seen += histogram.get(bucket) ?? 0
    if (seen >= rank) return bucket === LOWEST ? 0 : valueOf(bucket)
  }
  return null
}

/** The middle of a bucket, in proportion to its bounds. */
const valueOf = (bucket: number): number => Number(((2 * Math.exp(bucket * GROWTH)) / 2.1).toPrecision(4))

/** The letter of each time in the JSON of histograms. */
const LETTERS = { duration_ms: 'd', upstream_ms: 'u', overhead_ms: 'o', first_token_ms: 'f' } as const
export type TimeName = keyof typeof LETTERS
export type Times = Record<TimeName, Histogram>
export const TIME_NAMES: readonly TimeName[] = ['duration_ms', 'upstream_ms', 'overhead_ms', 'first_token_ms']

export const noTimes = (): Times => ({
  duration_ms: new Map(),
  upstream_ms: new Map(),
  overhead_ms: new Map(),
  first_token_ms: new Map(),
})

export function addTimes(to: Times, from: Times): void {
  for (const name of TIME_NAMES) addHistogram(to[name], from[name])
}

/** In JSON, by the letter of the time: the lowest bucket, and how many fell into it and each one above. */
type Encoded = Record<string, [lowest: number, ...counts: number[]]>

export function encodeTimes(times: Times): string {
  const encoded: Encoded = {}
  for (const name of TIME_NAMES) {
    const histogram = times[name]
    if (histogram.size === 0) continue
    const lowest = Math.min(...histogram.keys())
    const length = Math.max(...histogram.keys()) - lowest + 1
    encoded[LETTERS[name]] = [lowest, ...Array.from({ length }, (_, i) => histogram.get(lowest + i) ?? 0)]
  }
  return JSON.stringify(encoded)
}

/** Two of what `encodeTimes` made, added. Lists of numbers: with a map of buckets it takes fifty times as long (0.8 ms). */
export function mergeEncoded(before: string, more: string): string {
  const encoded: Encoded = JSON.parse(before)
  const added: Encoded = JSON.parse(more)
  for (const letter of Object.keys(added)) {
    const [a, b] = [encoded[letter], added[letter]]
    if (b) encoded[letter] = a ? mergedCounts(a, b) : b
  }
  return JSON.stringify(encoded)
}

function mergedCounts(a: Encoded[string], b: Encoded[string]): Encoded[string] {
  const lowest = Math.min(a[0], b[0])
  const end = Math.max(a[0] + a.length, b[0] + b.length) - 1
  const merged: Encoded[string] = [lowest]
  for (let bucket = lowest; bucket < end; bucket++) merged.push(countAt(a, bucket) + countAt(b, bucket))
  return merged
}

/** The first place holds the lowest bucket. */
const countAt = (counts: Encoded[string], bucket: number): number =>
  bucket < counts[0] ? 0 : (counts[bucket - counts[0] + 1] ?? 0)

const NAMES = new Map<string, TimeName>(TIME_NAMES.map((name) => [LETTERS[name], name]))

/** Adds what `encodeTimes` made. */
export function addEncoded(to: Times, text: string): void {
  const encoded: Encoded = JSON.parse(text)
  for (const [letter, [lowest, ...counts]] of Object.entries(encoded)) {
    const name = NAMES.get(letter)
    if (name === undefined) continue
    for (const [i, count] of counts.entries()) {
      if (count > 0) to[name].set(lowest + i, (to[name].get(lowest + i) ?? 0) + count)
    }
  }
}
