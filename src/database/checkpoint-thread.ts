import { parentPort, workerData } from 'node:worker_threads'
import { SqliteDriver } from './sqlite-driver.ts'

/** So often it looks for what was committed while it worked. */
const PASSES = 5
/** Where more was, commits come too fast for it: the log would grow while it tries. */
const MOST_PAGES_LEFT = 500

const database = new SqliteDriver(String(workerData))
const look = database.prepare<[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)')

/**
 * Brings the log into the database, which holds up neither readers nor the writer. Each pass finds what was committed during
 * the one before, and so less. @returns whether all of it is in, at one moment
 */
function checkpoint(): boolean {
  for (let pass = 0, before = -1; pass < PASSES; pass++) {
    database.pragma('wal_checkpoint(PASSIVE)')
    const { log = 0, checkpointed = 0 } = look.get() ?? {}
    if (checkpointed === log) return true
    // At the same page as before: an older reader needs what is in the log.
    if (checkpointed === before || log - checkpointed > MOST_PAGES_LEFT) return false
    before = checkpointed
  }
  return false
}

/** A checkpoint for every message. */
parentPort?.on('message', () => {
  let isWhole = false
  try {
    isWhole = checkpoint()
  } catch {
    // A full disk, perhaps: what is in the log is safe there, and the next one brings it in.
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is of windows
  parentPort?.postMessage(isWhole)
})
