import { randomFillSync, randomUUID } from 'node:crypto'
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
