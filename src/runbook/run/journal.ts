import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeDirectorySync } from '../../base/directory.ts'
import { errorText } from '../../base/errors.ts'
import { fromJson } from '../hcl/json.ts'
import { isMap, mapOf, type Value } from '../hcl/values.ts'
import { conceal } from './concealment.ts'
import type { Concealment, JournalHeader, JournalSink } from './options.ts'
import type { NodeRecord } from './record.ts'

/** RB609: the directory is in use, or its journal can't be read. */
export class JournalError extends Error {}

type Line =
  | ({ readonly type: 'run' } & JournalHeader)
  | ({ readonly type: 'node' } & NodeRecord)
  | { readonly type: 'started'; readonly path: string }
  | { readonly type: 'end'; readonly status: string }

export type JournalMode = 'always' | 'on_failure'

/**
 * Writes `<directory>/journal.jsonl`: `always` line by line, flushed to disk; `on_failure` at the end of a run that did
 * not succeed. Contract: runbook.md 9.
 */
export class JournalFile implements JournalSink {
  private readonly directory: string
  private readonly mode: JournalMode
  private readonly file: string
  private readonly lock: string
  private descriptor: number | undefined
  private buffered: Line[] = []
  private concealment: Concealment = { named: {}, mask: (value) => value }
  private written = false

  /** @throws JournalError when another process uses the directory */
  constructor(directory: string, mode: JournalMode) {
    this.directory = directory
    this.mode = mode
    this.file = join(directory, 'journal.jsonl')
    this.lock = join(directory, 'lock')
  }

  get path(): string | undefined {
    return this.written ? this.file : undefined
  }

  begin(header: JournalHeader, concealment: Concealment, taken: readonly NodeRecord[]): void {
    this.concealment = concealment
    const isNew = !existsSync(this.file)
    if (this.mode === 'always') this.open()
    const lines: Line[] = [{ type: 'run', ...header }]
    if (isNew) for (const record of taken) lines.push({ type: 'node', ...record })
    this.write(...lines)
  }

  started(path: string): void {
    this.write({ type: 'started', path })
  }

  node(record: NodeRecord): void {
    this.write({ type: 'node', ...record })
  }

  end(status: string): void {
    this.write({ type: 'end', status })
    if (this.mode === 'on_failure' && status !== 'succeeded') {
      this.open()
      this.append(this.buffered)
    }
    this.close()
  }

  private open(): void {
    try {
      makeDirectorySync(this.directory)
      takeLock(this.lock)
      cutTornLine(this.file)
      this.descriptor = openSync(this.file, 'a', 0o600)
    } catch (error) {
      if (error instanceof JournalError) throw error
      throw new JournalError(`no journal can be written in ${this.directory}: ${errorText(error)}`)
    }
    this.written = true
  }

  private write(...lines: Line[]): void {
    if (this.mode === 'on_failure') this.buffered.push(...lines)
    else this.append(lines)
  }

  private append(lines: readonly Line[]): void {
    if (this.descriptor === undefined) return
    for (const line of lines) writeFileSync(this.descriptor, `${JSON.stringify(this.concealed(line))}\n`)
    fsyncSync(this.descriptor)
  }

  /** Named secrets become their names, which a resume puts back; what has no name is masked, and so not reusable. */
  private concealed(line: Line): Value {
    const entries = Object.entries(line).map(([key, value]): [string, Value] => [key, fromJson(value)])
    const data = mapOf(entries.filter(([key]) => DATA.has(key)))
    const named = conceal(data, this.concealment.named)
    const masked = this.concealment.mask(named)
    const redacted = line.type === 'node' && JSON.stringify(masked) !== JSON.stringify(named)
    return mapOf([...entries, ...(isMap(masked) ? Object.entries(masked) : []), ...(redacted ? REDACTED : [])])
  }

  private close(): void {
    if (this.descriptor === undefined) return
    closeSync(this.descriptor)
    this.descriptor = undefined
    rmSync(this.lock, { force: true })
    HELD.delete(this.lock)
  }
}

/** Fields of a line that come from outside; the others are the file's own names. */
const DATA: ReadonlySet<string> = new Set(['inputs', 'triggerData', 'variables', 'output', 'error', 'attempts'])
const REDACTED: [string, Value][] = [['redacted', true]]

/** What a kill has left of a line would spoil the next one. */
function cutTornLine(file: string): void {
  if (!existsSync(file)) return
  const bytes = readFileSync(file)
  const end = bytes.lastIndexOf('\n') + 1
  if (end < bytes.length) truncateSync(file, end)
}

/** Locks of this process, whose number alone would not tell its runs apart. */
const HELD = new Set<string>()

/** A lock whose process is gone is taken over. @throws JournalError */
function takeLock(path: string): void {
  // Linked when it is written: another process never reads it empty, which is nobody's.
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, String(process.pid), { mode: 0o600 })
  try {
    if (existsSync(path) && lockOwner(path) === undefined) rmSync(path, { force: true })
    linkSync(draft, path)
  } catch (error) {
    const owner = lockOwner(path)
    throw owner === undefined ? error : new JournalError(`process ${owner} uses this run directory`)
  } finally {
    rmSync(draft)
  }
  HELD.add(path)
}

/** The process that uses a run directory, if it is still there. */
export function lockOwner(lock: string): number | undefined {
  if (!existsSync(lock)) return undefined
  const owner = Number(readFileSync(lock, 'utf8'))
  // A full disk or a crash of the machine may leave it empty, and 0 would be this group of processes.
  if (!(owner > 0)) return undefined
  return (owner === process.pid ? HELD.has(lock) : isRunning(owner)) ? owner : undefined
}

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    // a process of somebody else
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
