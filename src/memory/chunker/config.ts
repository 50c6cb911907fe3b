import { invalidInput } from '../errors.ts'

/** Names a workspace or an imprint may ask for. Contract: memory.md 5. */
export const CHUNKERS = ['default', 'markdown', 'no-chunk', 'code-go', 'csv', 'jsonl'] as const
export type ChunkerName = (typeof CHUNKERS)[number]

/** @throws invalid_input 400 for an unknown name. */
export function chunkerNamed(name: string): ChunkerName {
  const chunker = CHUNKERS.find((known) => known === name)
  if (!chunker) throw invalidInput(`chunker_id ${name} is not one of ${CHUNKERS.join(', ')}`, 'chunker_id')
  return chunker
}

/** A parsed `chunker_config`; a chunker reads the values it knows, the others stand at their defaults. */
export interface ChunkerConfig {
  /** Upper bound of a Cell in UTF-8 bytes. */
  targetBytes: number
  rowsPerCell: number
  hasHeader: boolean
  /** One code point. */
  delimiter: string
  linesPerCell: number
  validate: boolean
}

const BYTES_PER_TOKEN = 4
const FLAGS: Readonly<Record<string, boolean>> = { true: true, false: false, 1: true, 0: false, yes: true, no: false }

const KEYS: Readonly<Record<ChunkerName, readonly string[]>> = {
  default: ['target_tokens'],
  markdown: ['target_tokens'],
  'no-chunk': [],
  'code-go': [],
  csv: ['rows_per_cell', 'has_header', 'delimiter'],
  jsonl: ['lines_per_cell', 'validate'],
}

/**
 * Reads a `chunker_config` (string values); keys the chunker does not know are ignored.
 * @throws MemoryError invalid_input that names the key of a bad value.
 */
export function parseChunkerConfig(name: ChunkerName, raw: Readonly<Record<string, string>> = {}): ChunkerConfig {
  const known = new Map(Object.entries(raw).filter(([key]) => KEYS[name].includes(key)))
  return {
    targetBytes: BYTES_PER_TOKEN * integer(known, 'target_tokens', 512, 16, 8192),
    rowsPerCell: integer(known, 'rows_per_cell', 1, 1),
    hasHeader: flag(known, 'has_header'),
    delimiter: delimiter(known),
    linesPerCell: integer(known, 'lines_per_cell', 1, 1),
    validate: flag(known, 'validate'),
  }
}

type Values = ReadonlyMap<string, string>

const bad = (key: string, rule: string): Error => invalidInput(`chunker_config.${key} must be ${rule}`, key)

function integer(values: Values, key: string, fallback: number, min: number, max = Number.MAX_SAFE_INTEGER): number {
  const text = values.get(key)
  if (text === undefined) return fallback
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw bad(key, max === Number.MAX_SAFE_INTEGER ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`)
}

function flag(values: Values, key: string): boolean {
  const value = FLAGS[values.get(key) ?? 'true']
  if (value === undefined) throw bad(key, `one of ${['true', 'false', '1', '0', 'yes', 'no'].join(', ')}`)
  return value
}

function delimiter(values: Values): string {
  const value = values.get('delimiter') ?? ','
  if (!/^[^"\r\n]$/u.test(value)) {
    throw bad('delimiter', 'one character, no quote or line break')
  }
  return value
}
