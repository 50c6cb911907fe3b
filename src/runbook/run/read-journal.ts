import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { fromJson } from '../hcl/json.ts'
import { isMap, type Value } from '../hcl/values.ts'
import { JournalError, mapTexts, MARK } from './journal.ts'
import type { JournalHeader } from './options.ts'
import type { NodeRecord } from './record.ts'

/** A journal as it was read. */
export interface Journal {
  readonly header: JournalHeader
  readonly attempt: number
  /** The last record of each node, by path. */
  readonly records: ReadonlyMap<string, NodeRecord>
  /** Nodes with external effects that had started and did not settle. */
  readonly unfinished: readonly string[]
}

const headerLine = z.looseObject({
  type: z.literal('run'),
  runId: z.string(),
  attempt: z.number(),
  workflow: z.string(),
  file: z.string(),
  startedAt: z.string(),
  digests: z.record(z.string(), z.string()),
  workflowDigest: z.string(),
  reused: z.array(z.string()).default([]),
})

const nodeLine = z.looseObject({
  type: z.literal('node'),
  path: z.string(),
  id: z.string(),
  status: z.string(),
  attempts: z.array(z.unknown()),
  durationMs: z.number(),
})

const isRecord = (value: unknown): value is NodeRecord => nodeLine.safeParse(value).success

/** Reads a run directory; a torn last line is ignored. @throws JournalError */
export function readJournal(directory: string, hidden: Readonly<Record<string, string>> = {}): Journal {
  const lines = readLines(join(directory, 'journal.jsonl'))
  let header: JournalHeader | undefined
  const records = new Map<string, NodeRecord>()
  const open = new Set<string>()
  for (const line of lines) {
    const value = reveal(fromJson(line), hidden)
    if (!isMap(value)) continue
    if (value.type === 'run') {
      header = toHeader(value)
      // of earlier attempts counts what the later one has taken over
      const reused = new Set(header.reused)
      for (const path of records.keys()) if (!reused.has(path)) records.delete(path)
      open.clear()
    }
    if (typeof value.path === 'string' && value.type === 'started') open.add(value.path)
    else if (isRecord(value)) {
      open.delete(value.path)
      records.set(value.path, value)
    }
  }
  if (!header) throw new JournalError('the journal has no header')
  return { header, attempt: header.attempt, records, unfinished: [...open] }
}

function readLines(path: string): unknown[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new JournalError(`no journal at ${path}`)
  }
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line, i) => {
    try {
      return JSON.parse(line) as unknown
    } catch {
      if (i === lines.length - 1) return null
      throw new JournalError(`line ${i + 1} of the journal is broken`)
    }
  })
}

function toHeader(value: { readonly [key: string]: Value }): JournalHeader {
  const parsed = headerLine.safeParse(value)
  if (!parsed.success) throw new JournalError('the header of the journal is broken')
  const { inputs = null, triggerData = null, variables = null } = value
  return {
    ...parsed.data,
    inputs: isMap(inputs) ? inputs : {},
    triggerData,
    variables: isMap(variables) ? variables : {},
  }
}

/** Puts secrets back; one that is not given any more is empty. */
function reveal(value: Value, hidden: Readonly<Record<string, string>>): Value {
  return mapTexts(value, (text) =>
    text
      .split(MARK)
      .map((part, i) => (i % 2 === 0 ? part : (hidden[part] ?? '')))
      .join(''),
  )
}
