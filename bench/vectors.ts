/**
 * The exact vector scan: node bench/run.mjs vectors [clustered|uniform] [rows ...]
 * Times are milliseconds; `put` is microseconds a vector; recall@10 is of 40 candidates scored again with the vectors.
 */
import { VectorCodes } from '../src/memory/search/codes.ts'
import { TopK } from '../src/memory/search/top-k.ts'
import { dot, vectorSource } from '../test/memory/search/random-vectors.ts'

const DIMENSION = 1_024
const [kind = 'clustered', ...sizes] = process.argv.slice(2)
const vectorOf = vectorSource(DIMENSION, kind === 'uniform' ? 'uniform' : 'clustered')
const queries = Array.from({ length: 10 }, (_, i) => vectorOf(-1 - i))

function milliseconds(action: () => void): number {
  const start = performance.now()
  action()
  return performance.now() - start
}

/** Median and 95th percentile over 100 runs, each with the next query. */
function measure(action: (query: Float32Array) => void): { p50: number; p95: number } {
  const times = Array.from({ length: 10 }, () => queries)
    .flat()
    .map((query) => milliseconds(() => action(query)))
    .sort((a, b) => a - b)
  const at = (share: number): number => Number((times[Math.floor(share * times.length)] ?? 0).toFixed(2))
  return { p50: at(0.5), p95: at(0.95) }
}

/** Fills an index of `rows` vectors and finds, on the way, the ten best of each query exactly. */
function fill(rows: number): { codes: VectorCodes; putMicroseconds: number; exact: TopK[] } {
  const codes = new VectorCodes(DIMENSION)
  const exact = queries.map(() => new TopK(10))
  let putting = 0
  for (let slot = 0; slot < rows; slot++) {
    const vector = vectorOf(slot)
    putting += milliseconds(() => codes.put(slot, vector))
    exact.forEach((best, i) => {
      const score = dot(queries[i] ?? vector, vector)
      if (score > best.floor) best.push(slot, score)
    })
  }
  return { codes, putMicroseconds: (1_000 * putting) / rows, exact }
}

function recall(codes: VectorCodes, exact: readonly TopK[]): number {
  const found = queries.map((query, i) => {
    const best = new TopK(10)
    for (const slot of codes.top(query, 40).slots.sort()) best.push(slot, dot(query, vectorOf(slot)))
    const truth = new Set(exact[i]?.ranked().slots)
    return best.ranked().slots.filter((slot) => truth.has(slot)).length / 10
  })
  return found.reduce((sum, share) => sum + share, 0) / found.length
}

for (const rows of sizes.length > 0 ? sizes.map(Number) : [10_000, 100_000, 1_000_000]) {
  const { codes, putMicroseconds, exact } = fill(rows)
  const oneInThousand = new Uint8Array(rows).map((_, slot) => (slot % 1_000 === 0 ? 1 : 0))
  const half = new Uint8Array(rows).map((_, slot) => slot % 2)
  const some = Uint32Array.from({ length: 1_000 }, (_, i) => Math.floor((i * rows) / 1_000))
  const first = milliseconds(() => codes.top(vectorOf(-99), 40))
  console.log(kind, rows, {
    first: Number(first.toFixed(2)),
    'top 40': measure((query) => codes.top(query, 40)),
    'top 400': measure((query) => codes.top(query, 400)),
    'every 2nd': measure((query) => codes.top(query, 40, half)),
    'every 1000th': measure((query) => codes.top(query, 40, oneInThousand)),
    'scoreAt 1000': measure((query) => codes.scoreAt(some, query)),
    put: Number(putMicroseconds.toFixed(1)),
    MiB: Math.round(codes.byteLength / 2 ** 20),
    'recall@10': recall(codes, exact),
  })
}
