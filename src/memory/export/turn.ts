import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { releaseLease, takeLease } from '../store/outbox.ts'
import { ExportError } from './format.ts'

const NAME = 'import'
/** A process that died holds the others up for so long. */
const LEASE_MS = 6000
const PATIENCE_MS = 20_000
const POLL_MS = 200

/**
 * One import at a time: runs `work` once no other is running. `confirm` proves, in a transaction, that the turn was not lost.
 * @throws ExportError when another one goes on and on, or took over while this one was asleep
 */
export async function inTurn<T>(
  db: Database,
  holder: string,
  clock: Clock,
  work: (confirm: (tx: Queryable) => Promise<void>) => Promise<T>,
): Promise<T> {
  const take = (tx: Queryable): Promise<boolean> => takeLease(tx, NAME, holder, clock.now(), clock.now() + LEASE_MS)
  const end = performance.now() + PATIENCE_MS
  while (!(await db.transaction(take))) {
    if (performance.now() > end) throw new ExportError('another import into this store is running: wait for its end')
    await sleep(POLL_MS)
  }
  // A renewal that fails shows when the turn is confirmed.
  const renewal = setInterval(() => void db.transaction(take).catch(() => false), LEASE_MS / 3)
  try {
    return await work(async (tx) => {
      if (!(await take(tx))) throw new ExportError('another import took over while this one stood still: run it again')
    })
  } finally {
    clearInterval(renewal)
    // It runs out by itself; what happened before is what to tell.
    await db.transaction((tx) => releaseLease(tx, NAME, holder)).catch(() => undefined)
  }
}
