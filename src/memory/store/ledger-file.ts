import { constants, createReadStream, createWriteStream } from 'node:fs'
import { access, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline as pipe, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import * as z from 'zod'
import { parseTimestamp, toTimestamp, type Clock } from '../../base/clock.ts'
import { makeDirectory } from '../../base/directory.ts'
import { errorText } from '../../base/errors.ts'
import { flushDirectory } from '../../base/flush.ts'
import { jsonOf } from '../../base/json.ts'
import { ledgerEntrySchema, type LedgerEntry } from '../model.ts'
import type { Logger } from '../ports.ts'
import { toLedgerEntry, type LedgerRow } from './ledger.ts'
import { toJson } from './rows.ts'

const MAX_BYTES = 100 * 1024 * 1024
/** What was last written may come again after a crash: more than a batch of the outbox is looked at. */
const TAIL_BYTES = 16 * 1024 * 1024
const RECENT = 5000

/**
 * The ledger as a file: an entry a line, as REST shows it and with what proves it, mode 0600, flushed before `append`
 * resolves. A full file is set aside under the time (UTC) and gzipped. One process appends at a time, which the lease of
 * the outbox sees to; anyone may read meanwhile. Contract: memory.md 9.1.
 */
export class LedgerFile {
  readonly path: string
  readonly #clock: Clock
  readonly #log: Logger
  readonly #maxBytes: number
  /** Where the last append left the file; another size means that another process wrote, or that an append was cut off. */
  #size: number | undefined
  /** Ids of the last entries, the oldest first. */
  #recent = new Set<string>()
  #compressing: Promise<void> = Promise.resolve()

  constructor(path: string, clock: Clock, log: Logger, maxBytes = MAX_BYTES) {
    this.path = path
    this.#clock = clock
    this.#log = log
    this.#maxBytes = maxBytes
  }

  /** Appends those of the entries that are not in it yet; they are on the disk when it resolves. */
  async append(rows: readonly LedgerRow[]): Promise<void> {
    await makeDirectory(dirname(this.path))
    await this.#catchUp()
    const fresh = rows.filter((row) => !this.#recent.has(row.ledger_id))
    if (fresh.length === 0) return
    const lines = Buffer.from(fresh.map((row) => `${toLine(row)}\n`).join(''))
    const size = this.#size ?? 0
    if (size > 0 && size + lines.length > this.#maxBytes) await this.#rotate()
    await this.#write(lines)
    for (const row of fresh) this.#remember(row.ledger_id)
  }

  /** Every entry appended until now, in order. What is no entry is left out: the gap in its chain tells. */
  async *entries(): AsyncGenerator<LedgerRow> {
    const { rotated, current } = await this.#snapshot()
    try {
      for (const file of rotated) yield* rotatedEntries(file)
      if (current) yield* entriesIn(current.createReadStream({ autoClose: false }))
    } finally {
      await current?.close()
    }
  }

  /** The files of one moment: none was set aside between listing those and opening the current one. */
  async #snapshot(): Promise<{ rotated: string[]; current: FileHandle | undefined }> {
    for (;;) {
      const rotated = await this.#rotated()
      const current = await openExisting(this.path)
      if ((await this.#rotated()).length === rotated.length) return { rotated, current }
      await current?.close()
    }
  }

  /** Rejects with the reason when it could not be appended to. */
  async ping(): Promise<void> {
    const isThere = await stat(this.path).then(
      () => true,
      () => false,
    )
    await access(isThere ? this.path : dirname(this.path), constants.R_OK | constants.W_OK)
  }

  async close(): Promise<void> {
    await this.#compressing
  }

  async #write(lines: Buffer): Promise<void> {
    const isNew = (this.#size ?? 0) === 0
    const file = await open(this.path, 'a', 0o600)
    const size = this.#size ?? 0
    this.#size = undefined
    try {
      await file.appendFile(lines)
      await file.sync()
    } finally {
      await file.close()
    }
    if (isNew) await flushDirectory(dirname(this.path))
    this.#size = size + lines.length
  }

  /** Learns what the file ends with, where this process does not know it, and cuts off a line that was not finished. */
  async #catchUp(): Promise<void> {
    const file = await open(this.path, 'a+', 0o600)
    try {
      const { size } = await file.stat()
      if (size === this.#size) return
      const isFirst = this.#size === undefined
      const { text, end } = await readTail(file, size)
      if (end < size) {
        this.#log.warn(
          { path: this.path, bytes: size - end },
          'an unfinished line at the end of the ledger was cut off',
        )
        await file.truncate(end)
        await file.sync()
      }
      if (isFirst && end < TAIL_BYTES) await this.#recallRotated()
      for (const line of text.split('\n')) this.#remember(parseLine(line)?.ledger_id)
      this.#size = end
      if (isFirst) this.#compress()
    } finally {
      await file.close()
    }
  }

  /** A crash right after a rotation leaves what may come again in files before. */
  async #recallRotated(): Promise<void> {
    let recent: string[] = []
    for (const file of (await this.#rotated()).toReversed()) {
      if (recent.length >= RECENT) break
      const ids: string[] = []
      for await (const row of rotatedEntries(file)) ids.push(row.ledger_id)
      recent = [...ids, ...recent].slice(-RECENT)
    }
    for (const id of recent) this.#remember(id)
  }

  #remember(ledgerId: string | undefined): void {
    if (ledgerId === undefined) return
    this.#recent.add(ledgerId)
    if (this.#recent.size > 2 * RECENT) this.#recent = new Set([...this.#recent].slice(-RECENT))
  }

  async #rotate(): Promise<void> {
    const taken = new Set((await this.#rotated()).map(stampOf))
    let now = this.#clock.now()
    while (taken.has(stamp(now))) now++
    await rename(this.path, join(dirname(this.path), `${stem(this.path)}-${stamp(now)}.jsonl`))
    await flushDirectory(dirname(this.path))
    this.#size = 0
    this.#compress()
  }

  /** Beside everything else: a file not gzipped yet is as good, and the next start takes it up. */
  #compress(): void {
    this.#compressing = this.#compressing.then(() => this.#compressAll())
  }

  async #compressAll(): Promise<void> {
    try {
      for (const file of await this.#rotated()) if (file.endsWith('.jsonl')) await gzip(file)
    } catch (error) {
      this.#log.error({ reason: errorText(error) }, 'a full ledger file was not gzipped')
    }
  }

  /** The files set aside, the oldest first, each once. */
  async #rotated(): Promise<string[]> {
    const directory = dirname(this.path)
    const begin = `${stem(this.path)}-`
    const names = await readdir(directory)
    const files = names.filter(
      (name) => name.startsWith(begin) && /^\d{8}T\d{9}Z\.jsonl(\.gz)?$/.test(name.slice(begin.length)),
    )
    const plain = new Set(files)
    return files
      .filter((name) => !name.endsWith('.gz') || !plain.has(name.slice(0, -3)))
      .sort()
      .map((name) => join(directory, name))
  }
}

const stem = (path: string): string => basename(path, '.jsonl')

/** `20260102T030405678Z`: as text in order of time. */
const stamp = (ms: number): string => toTimestamp(ms).replaceAll(/[-:.]/g, '')

const stampOf = (file: string): string =>
  basename(file)
    .replace(/\.jsonl(\.gz)?$/, '')
    .slice(-19)

/** The last part of a file in whole lines, and where its last whole line ends. */
async function readTail(file: FileHandle, size: number): Promise<{ text: string; end: number }> {
  const from = Math.max(0, size - TAIL_BYTES)
  const buffer = Buffer.alloc(size - from)
  await file.read(buffer, 0, buffer.length, from)
  const end = buffer.lastIndexOf(0x0a) + 1
  return { text: buffer.toString('utf8', 0, end), end: from + end }
}

async function gzip(file: string): Promise<void> {
  const draft = `${file}.gz.draft`
  await pipeline(createReadStream(file), createGzip(), createWriteStream(draft, { mode: 0o600, flush: true }))
  await rename(draft, `${file}.gz`)
  await flushDirectory(dirname(file))
  await rm(file)
}

/** A plain file may have been gzipped since it was listed. */
async function* rotatedEntries(file: string): AsyncGenerator<LedgerRow> {
  const plain = file.replace(/\.gz$/, '')
  const handle = await openExisting(plain)
  if (handle) yield* entriesIn(handle.createReadStream())
  else yield* entriesIn(pipe(createReadStream(`${plain}.gz`), createGunzip(), () => undefined))
}

async function* entriesIn(stream: Readable): AsyncGenerator<LedgerRow> {
  stream.setEncoding('utf8')
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const row = parseLine(line)
      if (row) yield row
    }
  }
}

async function openExisting(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

const lineSchema = ledgerEntrySchema.extend({
  salt: z
    .base64()
    .optional()
    .transform((salt) => (salt === undefined ? null : Buffer.from(salt, 'base64'))),
  pii_digest: z.string(),
})

const toLine = (row: LedgerRow): string =>
  JSON.stringify({
    ...toLedgerEntry(row),
    salt: row.salt ? Buffer.from(row.salt).toString('base64') : undefined,
    pii_digest: row.pii_digest,
  } satisfies LedgerEntry & { salt: string | undefined; pii_digest: string })

function parseLine(line: string): LedgerRow | undefined {
  const { data: entry } = lineSchema.safeParse(jsonOf(line))
  if (!entry) return undefined
  return {
    ledger_id: entry.ledger_id,
    workspace_id: entry.workspace_id,
    seq: entry.seq,
    op: entry.op,
    agent_id: entry.agent_id,
    ts: parseTimestamp(entry.ts) ?? 0,
    target: entry.target ?? null,
    watermark_before: entry.watermark_before ?? null,
    watermark_after: entry.watermark_after ?? null,
    request_id: entry.request_id,
    latency_ms: entry.latency_ms,
    api_key_id: entry.api_key_id ?? null,
    user_id: entry.user_id ?? null,
    metadata: toJson(entry.metadata),
    ip: entry.ip ?? null,
    user_agent: entry.user_agent ?? null,
    redact_audit: Number(entry.redact_audit ?? false),
    redacted_fields: entry.redacted_fields ? JSON.stringify(entry.redacted_fields) : null,
    salt: entry.salt,
    pii_digest: entry.pii_digest,
    prev_hash: entry.prev_hash,
    entry_hash: entry.entry_hash,
  }
}
