import { randomBytes, randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'
import type { Clock } from './clock.ts'

const POOL_BYTES = 4096
let pool = Buffer.alloc(0)
let taken = 0

/** Where in the pool so many new bytes are: of the system's generator, as one by one they took 4 % of an imprint. */
function take(count: number): number {
  if (taken + count > pool.length) [pool, taken] = [randomBytes(Math.max(count, POOL_BYTES)), 0]
  taken += count
  return taken - count
}

/** Random bytes. */
export function pooledBytes(count: number): Buffer {
  const at = take(count)
  return pool.subarray(at, at + count)
}

/** A random number: at least 0, less than 1. */
function fraction(): number {
  const at = take(4)
  return pool.readUInt32LE(at) / 2 ** 32
}

/** Makes ids of the form `<prefix>` + ULID, monotonic within a process. */
export type IdSource = (prefix: string) => string

/** Time-ordered ids keep inserts at the end of the index; a random key costs up to twice the CPU per insert. */
export function createIdSource(clock: Clock): IdSource {
  const next = monotonicFactory(fraction)
  return (prefix) => prefix + next(clock.now())
}

/** Of the millisecond asked for last: many ids are made in one. */
let latest = { ms: Number.NaN, head: '' }

/** The digits of a UUID up to its variant's: a time in epoch ms, the version. */
function uuidHead(ms: number): string {
  if (ms !== latest.ms) {
    const time = ms.toString(16).padStart(12, '0')
    latest = { ms, head: `${time.slice(0, 8)}-${time.slice(8)}-7` }
  }
  return latest.head
}

/** A UUID of version 7 (RFC 9562) for a time in epoch ms; those of one millisecond come in no order. */
export const uuidAt = (ms: number): string => uuidHead(ms) + randomUUID().slice(15)

const UUID7 = /^([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

/** The time of a UUID of version 7 in epoch ms; undefined for anything else. */
export function timeOfUuid(id: string): number | undefined {
  const [, high, low] = UUID7.exec(id) ?? []
  return high === undefined ? undefined : Number.parseInt(`${high}${low}`, 16)
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
    return uuidHead(at) + counter.toString(16).padStart(3, '0') + randomUUID().slice(18)
  }
}
