import { fdatasyncSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { flushDirectory } from '../base/flush.ts'

/**
 * Brings commits to the disk, from a thread of the pool. SQLite's own flush of every commit (`synchronous = FULL`) would
 * hold up the event loop for as long as the disk takes: 5 to 30 ms of every 40 under load, measured in a virtual machine. And as
 * built here it is an `fsync`, which writes the time of the last change too.
 * A commit that is flushed here is as safe as one that SQLite flushed: frames of the log carry checksums, and recovery
 * takes those that are whole. https://www.sqlite.org/wal.html
 */
export class LogFlush {
  readonly #path: string
  readonly #atOnce: boolean
  #file: FileHandle | undefined

  /** @param atOnce flushes in the event loop: sooner, where nobody else is held up */
  constructor(database: string, atOnce: boolean) {
    this.#path = `${database}-wal`
    this.#atOnce = atOnce
  }

  /** Resolves once everything committed before is on the disk. */
  async flush(): Promise<void> {
    this.#file ??= await this.#open()
    if (this.#atOnce) fdatasyncSync(this.#file.fd)
    else await this.#file.datasync()
  }

  async close(): Promise<void> {
    await this.#file?.close()
  }

  /** The name of a new file is in its directory, which has to be flushed once. */
  async #open(): Promise<FileHandle> {
    const file = await open(this.#path, 'r+')
    await flushDirectory(dirname(this.#path))
    return file
  }
}
