import { open, readdir, rename, stat, unlink, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { makeDirectory } from '../../base/directory.ts'

const READ_BYTES = 4 * 1024 * 1024
const NEWLINE = 0x0a

/** Lines that are there again after a crash, and where behind them the next ones begin. */
export interface SpilledLines {
  readonly lines: readonly string[]
  readonly end: number
}

/**
 * Lines in a file while the database is away. Other processes may use the same file: each reads what it finds, and a file
 * that was read goes out of the way before its last look, so that whoever was about to append sees it gone and appends
 * anew. A line may thus be read twice, never not at all.
 */
export class Spill {
  readonly #path: string
  /** Where this process puts the file away to read the end of it. */
  readonly #aside: string
  readonly #maxBytes: number
  /** Files with lines to read: the first one from the offset on. */
  #files: { path: string; bytes: number }[] = []
  #offset = 0

  constructor(path: string, processId: string, maxBytes: number) {
    this.#path = path
    this.#aside = `${path}.${processId}`
    this.#maxBytes = maxBytes
  }

  get isEmpty(): boolean {
    return this.#files.length === 0
  }

  /** What waits, in bytes. */
  get bytes(): number {
    return this.#files.reduce((sum, { bytes }) => sum + bytes, 0) - this.#offset
  }

  /** Finds what earlier processes left. */
  async open(): Promise<void> {
    const name = basename(this.#path)
    const found = await readdir(dirname(this.#path)).catch(() => [])
    const left = found.filter((each) => each === name || each.startsWith(`${name}.`)).sort()
    for (const each of left.toReversed()) {
      const path = join(dirname(this.#path), each)
      // Another process may have read it meanwhile.
      const known = await stat(path).catch(ignoreAbsent)
      if (known) this.#files.push({ path, bytes: known.size })
    }
  }

  /** Appends lines and waits until they are on the disk; false when there is no room. @throws when the disk refuses */
  async append(lines: readonly string[]): Promise<boolean> {
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    if (this.bytes + bytes.length > this.#maxBytes) return false
    await makeDirectory(dirname(this.#path))
    for (;;) {
      const file = await open(this.#path, 'a+', 0o600)
      try {
        await endLine(file)
        await file.appendFile(bytes)
        await file.sync()
        const now = await stat(this.#path).catch(() => undefined)
        if (now?.ino === (await file.stat()).ino) return true
      } finally {
        await this.#know(file)
        await file.close()
      }
    }
  }

  /** Also where only a part found room: it must not lie there until its records are so old that they would count anew. */
  async #know(file: FileHandle): Promise<void> {
    const { size } = await file.stat()
    const known = this.#files.find(({ path }) => path === this.#path)
    if (known) known.bytes = size
    else if (size > 0) this.#files.push({ path: this.#path, bytes: size })
  }

  /** The next lines; none when there is nothing more. Call `advance` when they are done with. */
  async read(): Promise<SpilledLines | undefined> {
    for (;;) {
      const [first] = this.#files
      if (!first) return undefined
      const found = await readLines(first.path, this.#offset)
      if (found) return found
      await this.#finish(first.path)
    }
  }

  advance(end: number): void {
    this.#offset = end
  }

  /** The first file holds no more lines. */
  async #finish(path: string): Promise<void> {
    if (path === this.#path) {
      await rename(path, this.#aside).catch(ignoreAbsent)
      this.#files[0] = { path: this.#aside, bytes: this.#files[0]?.bytes ?? 0 }
      return
    }
    await unlink(path).catch(ignoreAbsent)
    this.#files.shift()
    this.#offset = 0
  }
}

/** A process that died while it appended may have left half a line. */
async function endLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat()
  if (size === 0) return
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  if (buffer[0] !== NEWLINE) await file.appendFile('\n')
}

/** Whole lines from an offset on; more are read until there is one. */
async function readLines(path: string, offset: number): Promise<SpilledLines | undefined> {
  const file = await open(path, 'r').catch(ignoreAbsent)
  if (!file) return undefined
  try {
    for (let length = READ_BYTES; ; length *= 2) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, offset)
      const last = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE)
      if (last >= 0) return { lines: buffer.toString('utf8', 0, last).split('\n'), end: offset + last + 1 }
      if (bytesRead < length) return undefined
    }
  } finally {
    await file.close()
  }
}

function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
