import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

/** Makes ids of the form `<prefix>` + ULID, monotonic within a process. */
export type IdSource = (prefix: string) => string

const BASE_32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const HALF = 2 ** 40

/** Digits of Crockford's base 32, the last ones of a whole number. */
function base32(value: number, length: number): string {
  let text = ''
  let rest = value
  for (let i = 0; i < length; i++) {
    text = (BASE_32[rest % 32] ?? '') + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/**
 * ULIDs: 48 bits of milliseconds and 80 of chance, of which one more is taken for each id of the same millisecond.
 * Time-ordered ids keep inserts at the end of the index; a random key costs up to twice the CPU per insert.
 */
export function createIdSource(clock: Clock): IdSource {
  let at = 0
  /** Of the id: the time and the upper half of the chance; what is added to the lower half. */
  let head = ''
  let low = 0
  const begin = (ms: number): void => {
    at = ms
    head = base32(ms, 10) + base32(chanceBelow(HALF), 8)
    low = chanceBelow(HALF)
  }
  return (prefix) => {
    const now = clock.now()
    if (now > at) begin(now)
    else if (++low >= HALF) begin(at + 1)
    return prefix + head + base32(low, 8)
  }
}

/** A whole number below a power of 2. */
const chanceBelow = (power: number): number => Number.parseInt(chanceDigits(12), 16) % power

const CHANCE_BYTES = 4096
let digits = ''
let digitsUsed = 0

/** Hexadecimal digits of the system's generator, asked for many at a time. */
function chanceDigits(count: number): string {
  if (digitsUsed + count > digits.length) {
    digits = randomBytes(CHANCE_BYTES).toString('hex')
    digitsUsed = 0
  }
  digitsUsed += count
  return digits.slice(digitsUsed - count, digitsUsed)
}

/** A UUID of version 7 (RFC 9562) for a time in epoch ms; those of one millisecond come in no order. */
export function uuidAt(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  const variant = '89ab'[Number.parseInt(chanceDigits(1), 16) & 3]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${chanceDigits(3)}-${variant}${chanceDigits(3)}-${chanceDigits(12)}`
}

const COUNTER_BITS = 12
const POOL_BYTES = 4096

/** Bytes of the system's generator, asked for many at a time. */
export function pooledBytes(): (bytes: number) => Uint8Array {
  let pool = Buffer.alloc(0)
  return (bytes) => {
    if (pool.length < bytes) pool = randomBytes(POOL_BYTES)
    const taken = pool.subarray(0, bytes)
    pool = pool.subarray(bytes)
    return taken
  }
}

/**
 * UUIDs of version 7, each greater than the one before in this process: 48 bits of milliseconds, a counter of 12, chance.
 * A counter that runs over, or a clock that goes back, moves on from the last millisecond given.
 */
export function createUuidSource(clock: Clock, random: (bytes: number) => Uint8Array = pooledBytes()): () => string {
  let at = 0
  let counter = 0
  return () => {
    const now = clock.now()
    if (now > at) [at, counter] = [now, 0]
    else if (++counter >= 1 << COUNTER_BITS) [at, counter] = [at + 1, 0]
    const chance = Buffer.from(random(8))
    chance[0] = ((chance[0] ?? 0) & 0x3f) | 0x80
    const hex = at.toString(16).padStart(12, '0') + '7' + counter.toString(16).padStart(3, '0') + chance.toString('hex')
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  }
}
