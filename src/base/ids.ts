import { monotonicFactory } from 'ulid'
import type { Clock } from './clock.ts'

/** Makes ids of the form `<prefix>` + ULID, monotonic within a process. */
export type IdSource = (prefix: string) => string

/** Time-ordered ids keep inserts at the end of the index; a random key costs up to twice the CPU per insert. */
export function createIdSource(clock: Clock, random?: () => number): IdSource {
  const next = monotonicFactory(random)
  return (prefix) => prefix + next(clock.now())
}
