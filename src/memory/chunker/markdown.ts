import { pack } from './default.ts'
import { isBlank, isSpace, lineEnd, skipSpace, withoutReturn, type Span } from './text.ts'

/** A stretch of Markdown that chunking does not look beyond: a whole fenced code block, or text under one heading. */
export interface Part extends Span {
  fence: boolean
}

/** Cells of the parts in turn; a fenced code block is one Cell whatever its size. Contract: memory.md 5, `markdown`. */
export function* splitMarkdown(content: string, targetBytes: number): Generator<string> {
  for (const part of markdownParts(content)) {
    if (part.fence) yield content.slice(part.start, part.end)
    else yield* pack(content, part.start, part.end, targetBytes)
  }
}

const [HASH, BACKTICK, TILDE] = [35, 96, 126]

/**
 * The parts in order. Fences and headings are those of CommonMark (headings: `#` to `######`), except that a fence may
 * stand at any depth, since in a list it is indented by more than three spaces. A fence that is never closed goes to the end.
 */
export function markdownParts(content: string): Part[] {
  const parts: Part[] = []
  let start = 0
  let open: { mark: number; run: number } | undefined
  const endPart = (end: number, fence: boolean): void => {
    if (end > start) parts.push({ start, end, fence })
    start = end
  }
  for (let line = 0; line < content.length;) {
    const stop = lineEnd(content, line, content.length)
    const first = skipSpace(content, line, stop)
    const mark = first < stop ? content.charCodeAt(first) : 0
    const run = mark === HASH || mark === BACKTICK || mark === TILDE ? runLength(content, first, stop) : 0
    if (open) {
      if (mark === open.mark && run >= open.run && isBlank(content, first + run, stop)) {
        endPart(withoutReturn(content, line, stop), true)
        open = undefined
      }
    } else if (mark === HASH) {
      if (isHeading(content, line, first, run, stop)) endPart(line, false)
    } else if (run >= 3 && !(mark === BACKTICK && content.slice(first + run, stop).includes('`'))) {
      endPart(line, false)
      open = { mark, run }
    }
    line = stop + 1
  }
  endPart(content.length, open !== undefined)
  return parts
}

function runLength(content: string, start: number, end: number): number {
  let at = start
  while (at < end && content.charCodeAt(at) === content.charCodeAt(start)) at++
  return at - start
}

/** `first` is where the `#` run begins; deeper than three spaces it is code. */
const isHeading = (content: string, line: number, first: number, run: number, stop: number): boolean =>
  run <= 6 &&
  '   '.startsWith(content.slice(line, first)) &&
  (first + run === stop || isSpace(content.charCodeAt(first + run)))
