import { parentPort, workerData } from 'node:worker_threads'
import { SqliteDriver } from './sqlite-driver.ts'

const database = new SqliteDriver(String(workerData))

/** A checkpoint for every message, which holds up neither readers nor the writer. */
parentPort?.on('message', () => {
  try {
    database.pragma('wal_checkpoint(PASSIVE)')
  } catch {
    // A full disk, perhaps: what is in the log is safe there, and the next one brings it in.
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is of windows
  parentPort?.postMessage(undefined)
})
