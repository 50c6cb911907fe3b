import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'

const COUNTER_BITS = 12

/**
 * UUIDs of version 7, each greater than the one before in this process: 48 bits of milliseconds, a counter of 12, chance.
 * A counter that runs over, or a clock that goes back, moves on from the last millisecond given.
 */
export function createUuidSource(clock: Clock, random: (bytes: number) => Uint8Array = randomBytes): () => string {
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
