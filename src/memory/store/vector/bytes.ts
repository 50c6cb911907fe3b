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
  const { buffer, byteOffset } = aligned(bytes)
  const { count, length } = shapeOf(bytes)
  const values = new Float32Array(buffer, byteOffset, count)
  if (length === count) return values
  const map = new Uint8Array(buffer, byteOffset + 4 * count, length / 8)
  const vector = new Float32Array(length)
  let next = 0
  for (let at = 0; at < map.length; at++) {
    for (let rest = map[at] ?? 0; rest !== 0; rest &= rest - 1) vector[8 * at + lowestBit(rest)] = values[next++] ?? 0
  }
  if (next !== count) throw noVector()
  return vector
}

/**
 * Sums of products with a query's values, without unpacking: an array for each of a search's candidates is what a search
 * would spend most on, and so would views of the parts of each. Of a packed vector only what the query has too is looked at.
 * @throws RangeError for bytes that are of no vector
 */
export function productsWith(query: Float32Array): (bytes: Uint8Array) => number {
  const asked = new Uint32Array(Math.ceil(query.length / 32))
  for (let i = 0; i < query.length; i++) if (query[i] !== 0) asked[i >>> 5] = (asked[i >>> 5] ?? 0) | (1 << (i & 31))
  let floats: Float32Array = new Float32Array(0)
  let bits: Uint32Array = new Uint32Array(0)
  return (bytes) => {
    const { buffer, byteOffset } = aligned(bytes)
    const { count, length } = shapeOf(bytes)
    if (buffer !== floats.buffer) {
      floats = new Float32Array(buffer, 0, buffer.byteLength >>> 2)
      bits = new Uint32Array(buffer, 0, floats.length)
    }
    const start = byteOffset / 4
    let sum = 0
    if (length === count) {
      for (let i = 0; i < count; i++) sum += (query[i] ?? 0) * (floats[start + i] ?? 0)
      return sum
    }
    let next = start
    for (let at = 0; at < length / 32; at++) {
      const there = bits[start + count + at] ?? 0
      for (let both = there & (asked[at] ?? 0); both !== 0; both &= both - 1) {
        const bit = 31 - Math.clz32(both & -both)
        const before = next + countBits(there & ((1 << bit) - 1))
        sum += (query[32 * at + bit] ?? 0) * (floats[before] ?? 0)
      }
      next += countBits(there)
    }
    if (next !== start + count) throw noVector()
    return sum
  }
}

function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** A view of floats must start at a multiple of four. */
const aligned = (bytes: Uint8Array): Uint8Array => (bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes))

/** How many values are there, and how many there should be: behind fewer of them lies their map. */
function shapeOf(bytes: Uint8Array): { count: number; length: number } {
  const { byteLength } = bytes
  if (byteLength % 4 === 0) return { count: byteLength / 4, length: byteLength / 4 }
  const length = (bytes[byteLength - 2] ?? 0) + 256 * (bytes[byteLength - 1] ?? 0)
  const count = (byteLength - LENGTH_BYTES - length / 8) / 4
  if (length % LENGTH_STEP !== 0 || count < 0 || !Number.isInteger(count) || count >= length) throw noVector()
  return { count, length }
}

const lowestBit = (byte: number): number => 31 - Math.clz32(byte & -byte)

const noVector = (): RangeError => new RangeError('the bytes are of no vector')
