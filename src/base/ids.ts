import { randomBytes, randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'
import type { Clock } from './clock.ts'

const POOL_BYTES = 4096
let pool = Buffer.alloc(0)

/** Bytes of the system's generator, asked for many at a time: one by one took 4 % of an imprint. */
export function pooledBytes(count: number): Buffer {
  if (pool.length < count) pool = randomBytes(Math.max(count, POOL_BYTES))
  const taken = pool.subarray(0, count)
  pool = pool.subarray(count)
  return taken
}

/** Makes ids of the form `<prefix>` + ULID, monotonic within a process. */
export type IdSource = (prefix: string) => string

/** Time-ordered ids keep inserts at the end of the index; a random key costs up to twice the CPU per insert. */
export function createIdSource(clock: Clock): IdSource {
  const next = monotonicFactory(() => pooledBytes(4).readUInt32LE() / 2 ** 32)
  return (prefix) => prefix + next(clock.now())
}

/** The digits of a UUID up to its variant: a time in epoch ms, the version, three more digits. */
function uuidHead(ms: number, digits: string): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits}`
}

/** A UUID of version 7 (RFC 9562) for a time in epoch ms; those of one millisecond come in no order. */
export function uuidAt(ms: number): string {
  const chance = randomUUID()
  return uuidHead(ms, chance.slice(15, 18)) + chance.slice(18)
}

const COUNTER_BITS = 12

/**
 * UUIDs of version 7, each greater than the one before in this process: 48 bits of milliseconds, a counter of 12, chance.
 * A counter that runs over, or a clock that goes back, moves on from the last millisecond given.
 */
export function createUuidSource(clock: Clock): () => string {
  let at = 0
  let counter = 0
  return () => {
    const now = clock.now()
    if (now > at) [at, counter] = [now, 0]
    else if (++counter >= 1 << COUNTER_BITS) [at, counter] = [at + 1, 0]
    return uuidHead(at, counter.toString(16).padStart(3, '0')) + randomUUID().slice(18)
  }
}
