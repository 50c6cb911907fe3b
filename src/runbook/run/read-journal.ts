import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { fromJson } from '../hcl/json.ts'
import { isMap, mapOf, type ValueMap } from '../hcl/values.ts'
import { reveal } from './concealment.ts'
import { JournalError } from './journal.ts'
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
  sensitive: z.array(z.string()).default([]),
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

/** Reads a run directory; a torn last line is ignored. `named` are the secrets as they are now. @throws JournalError */
export function readJournal(directory: string, named: Readonly<Record<string, string>> = {}): Journal {
  const lines = readLines(join(directory, 'journal.jsonl'))
  let header: JournalHeader | undefined
  const records = new Map<string, NodeRecord>()
  const open = new Set<string>()
  for (const line of lines) {
    const value = revealed(line, named)
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

/** The lines that were written whole, each with its end. */
function readLines(path: string): ValueMap[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new JournalError(`no journal at ${path}`)
  }
  const whole = text.split('\n').slice(0, -1)
  return whole.map((line, i) => {
    try {
      // field by field: data may be nested as deep as the bound already
      const fields: object = JSON.parse(line)
      return mapOf(Object.entries(fields).map(([key, field]) => [key, fromJson(field)]))
    } catch {
      throw new JournalError(`line ${i + 1} of the journal is broken`)
    }
  })
}

/** With its secrets put back; a node that needs one that is gone can't be reused. */
function revealed(line: ValueMap, named: Readonly<Record<string, string>>): ValueMap {
  const missing: string[] = []
  const value = mapOf(
    Object.entries(line).map(([key, field]) => [key, reveal(field, named, (name) => missing.push(name))]),
  )
  if (missing.length === 0) return value
  if (value.type === 'node') return mapOf([...Object.entries(value), ['redacted', true]])
  throw new JournalError(`the run was given ${missing.join(', ')}: give it again`)
}

function toHeader(value: ValueMap): JournalHeader {
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
