import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fromJson } from '../hcl/json.ts'
import { isList, isMap, mapOf, type Value } from '../hcl/values.ts'
import type { JournalHeader, JournalSink } from './options.ts'
import type { NodeRecord } from './record.ts'

/** Marks the place of a secret in the journal; the control characters stand in no text of a journal otherwise. */
export const MARK = '\u0001'

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
  private hidden: [name: string, value: string][] = []
  private mask: (value: Value) => Value = (value) => value
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

  begin(header: JournalHeader, hidden: Readonly<Record<string, string>>, mask: (value: Value) => Value): void {
    this.hidden = Object.entries(hidden).filter(([, value]) => value !== '')
    this.hidden.sort(([, a], [, b]) => b.length - a.length)
    this.mask = mask
    if (this.mode === 'always') this.open()
    this.write({ type: 'run', ...header })
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
      for (const line of this.buffered) this.append(line)
      this.flush()
    }
    this.close()
  }

  private open(): void {
    mkdirSync(this.directory, { recursive: true, mode: 0o700 })
    takeLock(this.lock)
    this.descriptor = openSync(this.file, 'a', 0o600)
    this.written = true
  }

  private write(line: Line): void {
    if (this.mode === 'on_failure') {
      this.buffered.push(line)
      return
    }
    this.append(line)
    this.flush()
  }

  private append(line: Line): void {
    if (this.descriptor !== undefined) writeSync(this.descriptor, `${JSON.stringify(this.concealed(line))}\n`)
  }

  /** Named secrets become their names, which a resume puts back; what has no name is masked, and so not reusable. */
  private concealed(line: Line): Value {
    const named = hide(fromJson(line), this.hidden)
    const masked = this.mask(named)
    const redacted = line.type === 'node' && JSON.stringify(masked) !== JSON.stringify(named)
    return redacted && isMap(masked) ? { ...masked, path: line.path, id: line.id, redacted } : masked
  }

  private flush(): void {
    if (this.descriptor !== undefined) fsyncSync(this.descriptor)
  }

  private close(): void {
    if (this.descriptor === undefined) return
    closeSync(this.descriptor)
    this.descriptor = undefined
    rmSync(this.lock, { force: true })
  }
}

/** A lock whose process is gone is taken over. */
function takeLock(path: string): void {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx', mode: 0o600 })
  } catch {
    const owner = Number(readFileSync(path, 'utf8'))
    if (owner !== process.pid && isRunning(owner)) throw new JournalError(`process ${owner} uses this run directory`)
    writeFileSync(path, String(process.pid), { mode: 0o600 })
  }
}

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Replaces secrets by their names. */
function hide(value: Value, hidden: readonly (readonly [string, string])[]): Value {
  return mapTexts(value, (text) => {
    let result = text
    for (const [name, secret] of hidden) result = result.replaceAll(secret, `${MARK}${name}${MARK}`)
    return result
  })
}

export function mapTexts(value: Value, change: (text: string) => string): Value {
  if (typeof value === 'string') return change(value)
  if (isList(value)) return value.map((item) => mapTexts(item, change))
  if (isMap(value)) return mapOf(Object.entries(value).map(([key, item]) => [change(key), mapTexts(item, change)]))
  return value
}
