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

export function encodeTimes(times: Times): string {
  const counts: Record<string, number> = {}
  for (const name of TIME_NAMES) for (const [bucket, count] of times[name]) counts[`${LETTERS[name]}${bucket}`] = count
  return JSON.stringify(counts)
}

/** Two of what `encodeTimes` made, added. */
export function mergeEncoded(before: string, more: string): string {
  const counts: Record<string, number> = JSON.parse(before)
  for (const [key, count] of Object.entries<number>(JSON.parse(more))) counts[key] = (counts[key] ?? 0) + count
  return JSON.stringify(counts)
}

const NAMES = new Map<string, TimeName>(TIME_NAMES.map((name) => [LETTERS[name], name]))

/** Adds what `encodeTimes` made. */
export function addEncoded(to: Times, text: string): void {
  for (const [key, count] of Object.entries<number>(JSON.parse(text))) {
    const name = NAMES.get(key.charAt(0))
    if (name === undefined) continue
    const bucket = Number(key.slice(1))
    to[name].set(bucket, (to[name].get(bucket) ?? 0) + count)
  }
}
