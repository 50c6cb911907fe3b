import { structuredPatch } from 'diff'

export interface DiffLine {
  kind: 'same' | 'add' | 'delete'
  text: string
  /** Line numbers, from 1, on the side or sides that have the line. */
  before?: number
  after?: number
}

export interface Diff {
  /** Stretches of changed lines with three lines around them. */
  hunks: DiffLine[][]
  added: number
  deleted: number
  /** Why no lines are shown. */
  omitted?: string
}

/** Beyond this a page would be too large, or a person would not read it. */
const LINES_MAX = 500
const CHARACTERS_MAX = 30_000
const TIMEOUT_MS = 50

/** Two texts line by line, as far as can be shown on a page. */
export function diffLines(before: string, after: string): Diff {
  const nothing = { hunks: [], added: 0, deleted: 0 }
  if (before === after) return { ...nothing, omitted: 'Nothing changes.' }
  const patch = structuredPatch('', '', before, after, undefined, undefined, { context: 3, timeout: TIMEOUT_MS })
  if (!patch) return { ...nothing, omitted: 'The texts differ too much to compare line by line.' }
  const hunks = patch.hunks.map(({ lines, oldStart, newStart }) => numbered(lines, oldStart, newStart))
  const all = hunks.flat()
  const counts = {
    added: all.filter(({ kind }) => kind === 'add').length,
    deleted: all.filter(({ kind }) => kind === 'delete').length,
  }
  const characters = all.reduce((sum, { text }) => sum + text.length, 0)
  if (all.length > LINES_MAX || characters > CHARACTERS_MAX) {
    return { ...counts, hunks: [], omitted: 'The changes are too large to show.' }
  }
  return { hunks, ...counts }
}

function numbered(lines: readonly string[], oldStart: number, newStart: number): DiffLine[] {
  let [before, after] = [oldStart, newStart]
  return lines.flatMap((line): DiffLine[] => {
    const text = line.slice(1)
    if (line.startsWith('+')) return [{ kind: 'add', text, after: after++ }]
    if (line.startsWith('-')) return [{ kind: 'delete', text, before: before++ }]
    if (line.startsWith('\\')) return []
    return [{ kind: 'same', text, before: before++, after: after++ }]
  })
}
