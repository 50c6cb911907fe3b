/** Random numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function randomSource(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Normally distributed, enough for test data: the sum of three uniform numbers. */
const normal = (random: () => number): number => 2 * (random() + random() + random()) - 3

export function normalize(vector: Float32Array): Float32Array {
  const norm = Math.hypot(...vector)
  return norm > 0 ? vector.map((value) => value / norm) : vector
}

export type VectorKind = 'clustered' | 'uniform'

/**
 * Unit vectors by number, each made anew from its number, so that a million need no room. `uniform` directions are the
 * worst case of any approximation; `clustered` ones lie on few dimensions around 300 centres, as those of texts do.
 */
export function vectorSource(dimension: number, kind: VectorKind, seed = 1): (number: number) => Float32Array {
  const directions = randomDirections(kind === 'clustered' ? 600 : 0, dimension, randomSource(seed))
  return (number) => {
    const random = randomSource(Math.imul(number + 1, 0x9e3779b1) ^ seed)
    if (kind === 'uniform') return normalize(new Float32Array(dimension).map(() => normal(random)))
    const vector = new Float32Array(dimension)
    addScaled(vector, 1, directions[Math.floor(300 * random())])
    for (let i = 0; i < 4; i++) addScaled(vector, 0.3 * normal(random), directions[300 + Math.floor(300 * random())])
    return normalize(vector)
  }
}

const randomDirections = (count: number, dimension: number, random: () => number): Float32Array[] =>
  Array.from({ length: count }, () => normalize(new Float32Array(dimension).map(() => normal(random))))

function addScaled(sum: Float32Array, factor: number, vector = sum): void {
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + factor * (vector[i] ?? 0)
}

/** The cosine of two unit vectors. */
export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[i] ?? 0)
  return sum
}
