import { unitVector } from './vector.ts'

export const NOOP_DIMENSION = 384

/** `noop:default`, for compatibility tests: adds byte/255 of the UTF-8 text to slot (index mod 384), then unit length. */
export function noopVector(text: string): Float32Array {
  const sums = new Float64Array(NOOP_DIMENSION)
  for (const [index, byte] of Buffer.from(text).entries()) {
    const slot = index % NOOP_DIMENSION
    sums[slot] = (sums[slot] ?? 0) + byte / 255
  }
  return unitVector(sums)
}
