import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'
import type { Clock } from './clock.ts'

/** Makes ids of the form `<prefix>` + ULID, monotonic within a process. */
export type IdSource = (prefix: string) => string

/** Time-ordered ids keep inserts at the end of the index; a random key costs up to twice the CPU per insert. */
export function createIdSource(clock: Clock): IdSource {
  const next = monotonicFactory(pooledRandom())
  return (prefix) => prefix + next(clock.now())
}

/** Numbers in [0, 1) from the system's generator, asked for 1024 at a time: one by one took 4 % of an imprint. */
function pooledRandom(): () => number {
  const pool = new Uint32Array(1024)
  let left = 0
  return () => {
    if (left === 0) {
      randomFillSync(pool)
      left = pool.length
    }
    return (pool[--left] ?? 0) / 2 ** 32
  }
}

/** A UUID of version 7 (RFC 9562) for a time in epoch ms; those of one millisecond come in no order. */
export function uuidAt(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

const COUNTER_BITS = 12
const POOL_BYTES = 4096

/** Of the system's generator, asked for so many at a time. */
function pooledBytes(): (bytes: number) => Uint8Array {
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
