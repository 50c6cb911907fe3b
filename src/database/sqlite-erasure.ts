import { fstatSync, openSync, read, readSync, statSync, writeSync } from 'node:fs'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type Sqlite from 'better-sqlite3'

const readAside = promisify(read)

/** Looked through at once: some 2 ms in which nothing else runs; then others have their turn. */
const SLICE_BYTES = 8 * 1024 * 1024
const REST_MS = 5
/** First byte of a page of a b-tree, and bytes of its header: interior and leaf pages of indexes and of tables. */
const HEADER_BYTES = new Map([
  [0x02, 12],
  [0x05, 12],
  [0x0a, 8],
  [0x0d, 8],
])
const FILE_HEADER_BYTES = 100
/** From here on the number of a next page, with which an overflow page begins, may look like the first byte of a b-tree. */
const PAGES_MAX = 2 ** 25
const PAGE_SIZE_MAX = 65_536

interface Gap {
  position: number
  length: number
}

/**
 * Takes what deleted rows left out of a database file and its log. `secure_delete` zeroes a row where it lies, but when
 * SQLite moves rows between pages, copies stay behind in the gap of a page, between its list of cells and the cells: bytes
 * that nothing reads, and that stay when the row is deleted later. VACUUM would take them too, and minutes; this reads the
 * file (some 1 GB/s) and writes only where it finds some. https://www.sqlite.org/fileformat2.html#b_tree_pages
 */
export class Erasure {
  readonly #writer: Sqlite.Database
  /** Never closed: closing any descriptor of a file drops all locks that the process holds on it (POSIX), SQLite's too. */
  readonly #file: number
  readonly #log: string
  readonly #pageSize: number

  constructor(writer: Sqlite.Database, path: string) {
    this.#writer = writer
    this.#file = openSync(path, 'r+')
    this.#log = `${path}-wal`
    this.#pageSize = Number(writer.pragma('page_size', { simple: true }))
  }

  /** What was deleted before the call is in no file after it. @throws when another connection does not let go of the log */
  async run(): Promise<void> {
    while (this.#writer.inTransaction) await setImmediate()
    this.#cutLog()
    if (fstatSync(this.#file).size / this.#pageSize >= PAGES_MAX) return
    const slice = Buffer.allocUnsafe(SLICE_BYTES)
    for (let start = 0; start < fstatSync(this.#file).size; start += SLICE_BYTES) {
      if (start > 0) await sleep(REST_MS)
      const { bytesRead } = await readAside(this.#file, slice, 0, SLICE_BYTES, start)
      if (this.#findGaps(slice, bytesRead, start).length === 0) continue
      while (this.#writer.inTransaction) await setImmediate()
      this.#zeroGaps(slice, start)
    }
  }

  /** Brings every page of the log to the file. */
  #cutLog(): void {
    const [outcome] = this.#writer.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
    if (outcome?.busy !== 0) throw new Error('the log is in use')
  }

  /**
   * With the log empty and the lock of writers held, no process changes the file, so that a gap is a gap while it is
   * zeroed. The commit makes other processes drop the pages that they have in memory, as we drop ours.
   */
  #zeroGaps(slice: Buffer, start: number): void {
    this.#cutLog()
    this.#writer.exec('BEGIN IMMEDIATE')
    try {
      if (statSync(this.#log).size > 0) throw new Error('another process wrote meanwhile')
      const size = readSync(this.#file, slice, 0, SLICE_BYTES, start)
      for (const { position, length } of this.#findGaps(slice, size, start)) {
        writeSync(this.#file, Buffer.alloc(length), 0, length, position)
      }
      const version = Number(this.#writer.pragma('user_version', { simple: true }))
      this.#writer.pragma(`user_version = ${(version + 1) % 2 ** 31}`)
      this.#writer.exec('COMMIT')
    } finally {
      if (this.#writer.inTransaction) this.#writer.exec('ROLLBACK')
    }
    this.#writer.pragma('shrink_memory')
  }

  /** Gaps of the slice that hold anything but zeros. */
  #findGaps(slice: Buffer, size: number, start: number): Gap[] {
    const gaps: Gap[] = []
    for (let page = 0; page + this.#pageSize <= size; page += this.#pageSize) {
      const header = page + (start + page === 0 ? FILE_HEADER_BYTES : 0)
      const headerBytes = HEADER_BYTES.get(slice[header] ?? 0)
      if (headerBytes === undefined) continue
      const from = header + headerBytes + 2 * slice.readUInt16BE(header + 3)
      const to = page + (slice.readUInt16BE(header + 5) || PAGE_SIZE_MAX)
      if (from < to && to <= page + this.#pageSize && !isZero(slice, from, to)) {
        gaps.push({ position: start + from, length: to - from })
      }
    }
    return gaps
  }
}

const ZEROS = Buffer.alloc(PAGE_SIZE_MAX)

const isZero = (bytes: Buffer, from: number, to: number): boolean => bytes.compare(ZEROS, 0, to - from, from, to) === 0
