import { Worker } from 'node:worker_threads'
import type Sqlite from 'better-sqlite3'
import { builtModule } from '../base/package-root.ts'

/**
 * Of the log, before they go into the database: 12 MB. A commit of a Memory logs 27 pages, most of them those that the commit before
 * did, so the fewer checkpoints the less is written.
 */
const PAGES = 3000

/**
 * Brings the log into the database from a thread of its own, which begins with the first 12 MB. SQLite does it at the end of a
 * commit, and would hold up the event loop: for 15 ms on a quiet machine, 26 to 41 under load.
 * https://www.sqlite.org/wal.html#ckpt
 */
export class Checkpoints {
  readonly #writer: Sqlite.Database
  readonly #look: Sqlite.Statement<[], { log: number; checkpointed: number }>
  #worker: Worker | undefined
  #isUnderWay = false

  constructor(writer: Sqlite.Database) {
    this.#writer = writer
    this.#look = writer.prepare('PRAGMA wal_checkpoint(NOOP)')
  }

  /** To be called after a commit; it never throws. `NOOP` only tells (SQLite 3.51): 0.9 µs. */
  committed(): void {
    if (this.#isUnderWay) return
    try {
      const { log = 0, checkpointed = 0 } = this.#look.get() ?? {}
      if (log - checkpointed >= PAGES) this.#begin()
    } catch {
      // Another process may be at the log: the next commit comes here again.
    }
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  #begin(): void {
    this.#isUnderWay = true
    this.#worker ??= this.#launch()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is of windows
    this.#worker.postMessage(undefined)
  }

  #launch(): Worker {
    const worker = new Worker(builtModule('checkpoint-thread'), { workerData: this.#writer.name })
    worker.unref()
    worker.on('message', (isWhole: boolean) => this.#end(isWhole))
    // Without a thread one stays under way, and commits do it.
    worker.on('error', () => undefined)
    return worker
  }

  /**
   * Only a log that is in the database to its last page begins anew: where commits come too fast for the thread, the last ones
   * are brought in here. It holds up the event loop, and with it goes a flush of the database's file.
   */
  #end(isWhole: boolean): void {
    this.#isUnderWay = false
    try {
      if (!isWhole && !this.#writer.inTransaction) this.#writer.pragma('wal_checkpoint(PASSIVE)')
    } catch {
      // As in the thread.
    }
  }
}
