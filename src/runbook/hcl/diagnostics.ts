import type { Source, SourceRange } from './source.ts'

type Level = 'error' | 'warning' | 'info'

/** One finding about a workflow file. Codes are those of runbook.md 12.1. */
export interface Diagnostic {
  readonly level: Level
  readonly code: `RB${number}`
  readonly message: string
  readonly range: SourceRange
  readonly hint?: string
  readonly nodeId?: string
  /** `from->to`. */
  readonly edgeId?: string
  readonly related?: readonly { message: string; range: SourceRange }[]
}

/** How many diagnostics of a file are shown. Contract: runbook.md 2.1. */
export const MAX_DIAGNOSTICS = 20

/** Diagnostics of one file, the surplus only counted. */
export class DiagnosticList {
  readonly items: Diagnostic[] = []
  omitted = 0

  add(diagnostic: Diagnostic): void {
    if (this.items.length < MAX_DIAGNOSTICS) this.items.push(diagnostic)
    else this.omitted++
  }
}

/** A syntax fault on its way to the recovery point that turns it into a diagnostic. */
export class SyntaxFault extends Error {
  readonly diagnostic: Diagnostic

  constructor(code: Diagnostic['code'], message: string, range: SourceRange, hint?: string) {
    super(message)
    this.diagnostic = { level: 'error', code, message, range, ...(hint === undefined ? {} : { hint }) }
  }
}

/** Nesting beyond the bound: parsing of the file ends here. */
export class NestingFault extends SyntaxFault {}

const TAB = /\t/g

/**
 * The text form of runbook.md 8:
 *
 *     error[RB205]: unknown attribute "urll" on node http "greet"
 *       --> hello.hcl:7:5
 *      7 |     urll = "https://example.com"
 *        |     ^^^^
 *        = hint: did you mean "url"?
 */
export function renderDiagnostic({ level, code, message, range, hint, related = [] }: Diagnostic): string {
  const { start, end } = range
  const number = String(start.line)
  const gutter = ' '.repeat(number.length + 1)
  const width = start.line === end.line ? Math.max(1, end.column - start.column) : 1
  const shown = clip(range.source.line(start.line), start.column, width)
  const lines = [
    `${level}[${code}]: ${message}`,
    `${gutter}--> ${range.toString()}`,
    ` ${number} | ${shown.text}`,
    ` ${gutter}| ${' '.repeat(shown.column - 1)}${'^'.repeat(shown.width)}`,
  ]
  for (const other of related) lines.push(` ${gutter}= ${other.message}: ${other.range.toString()}`)
  if (hint !== undefined) lines.push(` ${gutter}= hint: ${hint}`)
  return lines.join('\n')
}

const CLIP = 160

/** A line of a megabyte isn't shown whole; what is shown has no control characters. */
function clip(line: string, column: number, width: number): { text: string; column: number; width: number } {
  // oxlint-disable-next-line no-control-regex -- they would move the terminal's cursor
  const clean = (text: string): string => text.replace(TAB, ' ').replace(/[\x00-\x1f\x7f-\x9f]/g, '\ufffd')
  if (line.length <= CLIP) return { text: clean(line), column, width }
  const from = Math.max(0, column - 1 - CLIP / 2)
  return { text: clean(line.slice(from, from + CLIP)), column: column - from, width: Math.min(width, CLIP / 2) }
}

/** The JSON form of runbook.md 8. */
export function diagnosticJson(diagnostic: Diagnostic): Record<string, unknown> {
  const { level, code, message, hint, range, nodeId, edgeId, related } = diagnostic
  const { start, end } = range
  const last = Math.min(end.line, start.line + 4)
  const lines: string[] = []
  for (let line = start.line; line <= last; line++) lines.push(clip(range.source.line(line), 1, 1).text)
  return {
    level,
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    range: range.toJSON(),
    snippet: { startLine: start.line, lines },
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(edgeId === undefined ? {} : { edgeId }),
    ...(related ? { related: related.map((other) => ({ message: other.message, range: other.range.toJSON() })) } : {}),
  }
}

/** Orders by position, then code, so that output never depends on the order of checks. */
export const byPosition = (a: Diagnostic, b: Diagnostic): number =>
  compareText(a.range.file, b.range.file) ||
  a.range.from - b.range.from ||
  a.range.to - b.range.to ||
  compareText(a.code, b.code)

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Names that are compared for the faults of one file; 50,000 unknown names among 10,000 took 140 s without it. */
const MAX_COMPARISONS = 200_000
const comparisons = new WeakMap<Source, number>()

/** `did you mean "x"?` for the nearest known name, when one is near. A file with very many faults gets no more of them. */
export function didYouMean(name: string, known: Iterable<string>, source?: Source): { hint?: string } {
  const spent = (source && comparisons.get(source)) ?? 0
  if (spent > MAX_COMPARISONS) return {}
  const { nearest, compared } = suggest(name, known)
  if (source) comparisons.set(source, spent + compared)
  return nearest === undefined ? {} : { hint: `did you mean "${nearest}"?` }
}

/** The known name within a third of the letters of edit distance, the first of several. */
function suggest(name: string, known: Iterable<string>): { nearest?: string; compared: number } {
  let compared = 0
  if (name.length > 64) return { compared }
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    compared++
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best === undefined ? { compared } : { nearest: best, compared }
}

/** Optimal string alignment: insert, delete, replace, swap of neighbours. */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1))
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      row.push(cost)
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? 0
}

/** `a -> b -> c`, the middle of a long one left out. */
export function pathText(names: readonly string[]): string {
  const left = names.length - 20
  const shown = left > 0 ? [...names.slice(0, 10), `… ${left} more …`, ...names.slice(-10)] : names
  return shown.join(' -> ')
}

/** A diagnostic at a whole file, when there is no better place. */
export const fileDiagnostic = (code: Diagnostic['code'], message: string, source: Source): Diagnostic => ({
  level: 'error',
  code,
  message,
  range: source.range(source.start, source.start),
})
