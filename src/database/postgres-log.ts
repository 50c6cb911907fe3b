/**
 * Brings the commits of many transactions to the disk at once. A commit that waits for the disk keeps its locks until then:
 * transactions that lock the same row would come one to a flush. So they commit without, and what is committed next with a
 * flush takes all before it along, in the order of the log.
 * https://www.postgresql.org/docs/current/wal-async-commit.html
 */
export class SharedFlush {
  readonly #commit: () => Promise<unknown>
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<void> | undefined

  /** @param commit commits something, and waits for the disk as the server is set to */
  constructor(commit: () => Promise<unknown>) {
    this.#commit = commit
  }

  /** Resolves once everything committed before is on the disk. Who comes while a flush is under way waits for the next one. */
  flush(): Promise<void> {
    this.#next ??= this.#afterRunning()
    return this.#next
  }

  async #afterRunning(): Promise<void> {
    await this.#running
    this.#next = undefined
    const commit = this.#commit()
    this.#running = commit.catch(() => undefined)
    await commit
  }
}
