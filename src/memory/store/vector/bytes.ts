/** Behind the values and the map: how many values the vector has. */
const LENGTH_BYTES = 2
/** Only such lengths, which makes the bytes of a packed vector two more than a multiple of four. */
const LENGTH_STEP = 32

/**
 * A vector as bytes: its values (float32, little-endian), or where that is shorter those other than zero, a map with a bit
 * for each value, and the number of values. One of `hash:default` for a short text has some 800 zeros among 1024: packed, a
 * commit writes less, and a search reads less.
 */
export function toBytes(vector: Float32Array): Uint8Array {
  const { length } = vector
  let count = 0
  for (let i = 0; i < length; i++) if (vector[i] !== 0) count++
  const mapBytes = length / 8
  const size = 4 * count + mapBytes + LENGTH_BYTES
  if (length % LENGTH_STEP !== 0 || length > 0xffff || size >= 4 * length) {
    return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)
  }
  const bytes = new Uint8Array(size)
  const values = new Float32Array(bytes.buffer, 0, count)
  const map = 4 * count
  let next = 0
  for (let i = 0; i < length; i++) {
    const value = vector[i] ?? 0
    if (value === 0) continue
    values[next++] = value
    bytes[map + (i >>> 3)] = (bytes[map + (i >>> 3)] ?? 0) | (1 << (i & 7))
  }
  bytes[size - 2] = length & 0xff
  bytes[size - 1] = length >>> 8
  return bytes
}

/** @throws RangeError for bytes that are of no vector */
export function fromBytes(bytes: Uint8Array): Float32Array {
  const { values, map, length } = partsOf(bytes)
  if (!map) return values
  const vector = new Float32Array(length)
  let next = 0
  for (let at = 0; at < map.length; at++) {
    for (let rest = map[at] ?? 0; rest !== 0; rest &= rest - 1) vector[8 * at + lowestBit(rest)] = values[next++] ?? 0
  }
  if (next !== values.length) throw noVector()
  return vector
}

/**
 * Sums of products with a query's values, without unpacking: an array for each of a search's candidates is what a search
 * would spend most on. Of a packed vector only what the query has too is looked at.
 * @throws RangeError for bytes that are of no vector
 */
export function productsWith(query: Float32Array): (bytes: Uint8Array) => number {
  const asked = new Uint32Array(Math.ceil(query.length / 32))
  for (let i = 0; i < query.length; i++) if (query[i] !== 0) asked[i >>> 5] = (asked[i >>> 5] ?? 0) | (1 << (i & 31))
  return (bytes) => {
    const { values, map, length } = partsOf(bytes)
    let sum = 0
    if (!map) {
      for (let i = 0; i < values.length; i++) sum += (query[i] ?? 0) * (values[i] ?? 0)
      return sum
    }
    const bits = new Uint32Array(map.buffer, map.byteOffset, length / 32)
    let next = 0
    for (let at = 0; at < bits.length; at++) {
      const there = bits[at] ?? 0
      for (let both = there & (asked[at] ?? 0); both !== 0; both &= both - 1) {
        const bit = 31 - Math.clz32(both & -both)
        const before = next + countBits(there & ((1 << bit) - 1))
        sum += (query[32 * at + bit] ?? 0) * (values[before] ?? 0)
      }
      next += countBits(there)
    }
    if (next !== values.length) throw noVector()
    return sum
  }
}

function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** The values that are there, where they belong if some are not, and how many there should be. */
function partsOf(bytes: Uint8Array): { values: Float32Array; map?: Uint8Array; length: number } {
  // A view of floats must start at a multiple of four.
  const { buffer, byteOffset, byteLength } = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes)
  if (byteLength % 4 === 0)
    return { values: new Float32Array(buffer, byteOffset, byteLength / 4), length: byteLength / 4 }
  const length = (bytes[byteLength - 2] ?? 0) + 256 * (bytes[byteLength - 1] ?? 0)
  const start = byteLength - LENGTH_BYTES - length / 8
  if (length % LENGTH_STEP !== 0 || start < 0 || start % 4 !== 0) throw noVector()
  const map = new Uint8Array(buffer, byteOffset + start, length / 8)
  return { values: new Float32Array(buffer, byteOffset, start / 4), map, length }
}

const lowestBit = (byte: number): number => 31 - Math.clz32(byte & -byte)

const noVector = (): RangeError => new RangeError('the bytes are of no vector')
