import { invalidInput } from '../errors.ts'
import type { ChunkerConfig } from './config.ts'
import { isBlank, withoutReturn } from './text.ts'

/** Of all Cells together, in UTF-16 units: what a long header, repeated in each, may make of a content. */
const CELLS_MAX = 64 * 1024 * 1024

/**
 * `rowsPerCell` records a Cell, each below the header; records stay as written. Contract: memory.md 5, `csv`.
 * Nothing is unparsable: rows may be ragged, a quote inside a field is a character, an unclosed one runs to the end.
 * @throws MemoryError invalid_input when the header makes the Cells longer than a store and an answer can carry.
 */
export function* splitCsv(content: string, config: ChunkerConfig): Generator<string> {
  let header: string | undefined
  let rows: string[] = []
  let length = 0
  const cell = (): string => {
    const text = [...(header === undefined ? [] : [header]), ...rows].join('\n')
    rows = []
    length += text.length
    if (length > CELLS_MAX) throw tooLong(header)
    return text
  }
  for (const record of records(content, config.delimiter)) {
    if (config.hasHeader && header === undefined) header = record
    else if (rows.push(record) === config.rowsPerCell) yield cell()
  }
  if (rows.length > 0 || (length === 0 && header !== undefined)) yield cell()
}

const tooLong = (header = ''): Error =>
  invalidInput(
    `content: a header of ${header.length} characters, repeated in each Cell, makes the Cells longer than ${CELLS_MAX}: ` +
      'raise chunker_config.rows_per_cell, or set has_header to false',
    'content',
  )

/** The records that are not blank, without their line breaks and the byte order mark. */
function* records(content: string, delimiter: string): Generator<string> {
  for (let start = content.startsWith('\uFEFF') ? 1 : 0; start < content.length;) {
    const end = recordEnd(content, start, delimiter)
    if (!isBlank(content, start, end)) yield content.slice(start, withoutReturn(content, start, end))
    start = end + 1
  }
}

/** Index of the line feed that ends the record at `start`, or the length. */
function recordEnd(content: string, start: number, delimiter: string): number {
  const first = delimiter.charCodeAt(0)
  for (let field = start; ;) {
    let at = content[field] === '"' ? quotedEnd(content, field, delimiter) : field
    let code = content.charCodeAt(at)
    while (at < content.length && code !== 10 && !(code === first && content.startsWith(delimiter, at))) {
      code = content.charCodeAt(++at)
    }
    if (at >= content.length || code === 10) return at
    field = at + delimiter.length
  }
}

/** Behind the quote that closes the field opened at `open`: the first, not doubled, that a delimiter or line end follows. */
function quotedEnd(content: string, open: number, delimiter: string): number {
  for (let quote = content.indexOf('"', open + 1); quote >= 0;) {
    const next = quote + 1
    if (content[next] === '"') quote = content.indexOf('"', next + 1)
    else if (
      next === content.length ||
      content.startsWith(delimiter, next) ||
      /^\r?\n/.test(content.slice(next, next + 2))
    )
      return next
    else quote = content.indexOf('"', next)
  }
  return content.length
}
