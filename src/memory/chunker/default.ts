import { isBlank, isLowSurrogate, isSpace, lineEnd, utf8Length, utf8Size, withoutReturn, type Span } from './text.ts'

/**
 * Cells of `content[start, end)`: whole paragraphs packed to at most `targetBytes`. Contract: memory.md 5, `default`.
 *
 * A paragraph is a run of lines that are not blank. A Cell is a stretch of the content, so what lies between its paragraphs
 * stays as written; what lies between two Cells is the line break and blank lines that separate paragraphs, or nothing
 * where one paragraph was cut. Every code point that is not white space is in exactly one Cell, and no Cell is blank.
 */
export function* pack(content: string, start: number, end: number, targetBytes: number): Generator<string> {
  let cell: Span | undefined
  let bytes = 0
  for (const piece of pieces(content, start, end, targetBytes)) {
    const grown = cell ? bytes + utf8Length(content, cell.end, piece.end) : Infinity
    if (cell && grown <= targetBytes) {
      cell.end = piece.end
      bytes = grown
    } else {
      if (cell) yield content.slice(cell.start, cell.end)
      cell = piece
      bytes = utf8Length(content, piece.start, piece.end)
    }
  }
  if (cell) yield content.slice(cell.start, cell.end)
}

/** The paragraphs, those longer than the target cut. */
function* pieces(content: string, start: number, end: number, targetBytes: number): Generator<Span> {
  for (const paragraph of paragraphs(content, start, end)) {
    for (let at = paragraph.start; at < paragraph.end;) {
      const cut = pieceEnd(content, at, paragraph.end, targetBytes)
      if (!isBlank(content, at, cut)) yield { start: at, end: cut }
      at = cut
    }
  }
}

function* paragraphs(content: string, from: number, to: number): Generator<Span> {
  let start = -1
  let end = -1
  for (let line = from; line < to;) {
    const stop = lineEnd(content, line, to)
    if (!isBlank(content, line, stop)) {
      if (start < 0) start = line
      end = withoutReturn(content, line, stop)
    } else if (start >= 0) {
      yield { start, end }
      start = -1
    }
    line = stop + 1
  }
  if (start >= 0) yield { start, end }
}

/** `end` if the text fits, else behind the last sentence end (and its space) past half the target, else where it is full. */
function pieceEnd(content: string, start: number, end: number, targetBytes: number): number {
  let bytes = 0
  let sentence = 0
  let previous = 0
  for (let at = start; at < end; at++) {
    const code = content.charCodeAt(at)
    bytes += utf8Size(code)
    if (bytes > targetBytes) return sentence || (isLowSurrogate(code) ? at - 1 : at)
    if (isStop(previous) && bytes > targetBytes / 2 && isSpace(code)) sentence = at + 1
    previous = code
  }
  return end
}

const [PERIOD, EXCLAMATION, QUESTION] = [46, 33, 63]
const isStop = (code: number): boolean => code === PERIOD || code === EXCLAMATION || code === QUESTION
