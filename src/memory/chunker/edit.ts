import { split, type ChunkerConfig, type ChunkerName } from './index.ts'
import { pack } from './default.ts'
import { markdownParts, type Part } from './markdown.ts'
import { isBlank, lineEnd, skipSpace, utf8Length, type Span } from './text.ts'

/** The chunkers whose edits are local, and the parts they chunk one by one. */
const PARTS: Partial<Readonly<Record<ChunkerName, (content: string) => Part[]>>> = {
  default: (content) => [{ start: 0, end: content.length, fence: false }],
  markdown: markdownParts,
}

/**
 * Texts of the Cells after an edit. Contract: memory.md 5, "Edits are local".
 *
 * `default` and `markdown` keep the old Cells that stand as they stood: before and after the stretch that changed, and
 * inside it those that were moved whole; only the text between is chunked. Text appended at the end refills the last Cell.
 * The other chunkers, and old Cells that another chunker made, give a full `split`.
 * @throws MemoryError invalid_input as `split`.
 */
export function rechunk(
  name: ChunkerName,
  config: ChunkerConfig,
  oldCells: readonly { readonly text: string }[],
  oldContent: string,
  newContent: string,
): string[] {
  const partsOf = PARTS[name]
  const located = partsOf && locate(oldCells, oldContent)
  if (!located) return split(name, config, newContent)
  const page: Page = { content: newContent, parts: partsOf(newContent), targetBytes: config.targetBytes }
  const { kept, lost } = untouched(located, oldContent, page)
  return [...cellsAround(kept, new Moved(lost), page)]
}

/** An old Cell in the old content, and whether it was cut off there from the Cell before and after in one paragraph. */
interface OldCell extends Span {
  text: string
  cutBefore: boolean
  cutAfter: boolean
}

/** The new content as its chunker sees it. */
interface Page {
  content: string
  parts: readonly Part[]
  targetBytes: number
}

/** Finds the Cells in their content: in order, with nothing but white space around. Undefined where they are not so. */
function locate(cells: readonly { readonly text: string }[], content: string): OldCell[] | undefined {
  const located: OldCell[] = []
  let at = 0
  for (const { text } of cells) {
    const start = skipSpace(content, at, content.length) - skipSpace(text, 0, text.length)
    if (start < at || !content.startsWith(text, start)) return undefined
    const before = located.at(-1)
    const cutBefore = before !== undefined && start === at
    if (before) before.cutAfter = cutBefore
    at = start + text.length
    located.push({ text, start, end: at, cutBefore, cutAfter: false })
  }
  return isBlank(content, at) ? located : undefined
}

/** Splits the old Cells into those that stay (as spans of the new content) and those that lost their place. */
function untouched(cells: readonly OldCell[], oldContent: string, page: Page): { kept: Span[]; lost: OldCell[] } {
  const { content } = page
  const prefix = commonPrefix(oldContent, content)
  const suffix = commonSuffix(oldContent, content, Math.min(oldContent.length, content.length) - prefix)
  const isAppend = prefix === oldContent.length && content.length > prefix
  const kept: Span[] = []
  const lost: OldCell[] = []
  for (const cell of isAppend ? cells.slice(0, -1) : cells) {
    const isBehind = cell.start >= oldContent.length - suffix
    const shift = isBehind ? content.length - oldContent.length : 0
    const place = { start: cell.start + shift, end: cell.end + shift }
    if ((cell.end <= prefix || isBehind) && standsAt(page, cell, place, cell.cutBefore)) kept.push(place)
    else lost.push(cell)
  }
  return { kept, lost }
}

/** The Cells of the new content: the kept ones, and what chunking makes of the text between. */
function* cellsAround(kept: readonly Span[], moved: Moved, page: Page): Generator<string> {
  let at = 0
  for (const { start, end } of kept) {
    yield* cellsBetween(at, start, moved, page)
    yield page.content.slice(start, end)
    at = end
  }
  yield* cellsBetween(at, page.content.length, moved, page)
}

function* cellsBetween(start: number, end: number, moved: Moved, page: Page): Generator<string> {
  for (let index = partIndex(page.parts, start); index < page.parts.length; index++) {
    const part = page.parts[index]
    if (!part || part.start >= end) return
    const from = Math.max(part.start, start)
    const to = Math.min(part.end, end)
    // A kept Cell takes a fenced block whole or not at all.
    if (part.fence) yield page.content.slice(from, to)
    else yield* textCells(from, to, moved, page)
  }
}

/** Cells of text in one part: old Cells that were moved here, and what chunking makes of the rest. */
function* textCells(start: number, end: number, moved: Moved, page: Page): Generator<string> {
  const { content, targetBytes } = page
  let rest = start
  for (let at = start; at < end;) {
    const cell = moved.take(page, at, end, at === rest)
    if (cell) {
      yield* pack(content, rest, at, targetBytes)
      yield cell.text
      rest = at += cell.text.length
    } else {
      at = nextParagraph(content, at, end)
    }
  }
  yield* pack(content, rest, end, targetBytes)
}

/** Old Cells that lost their place, to be found again where they were moved to. Each is taken once. */
class Moved {
  /** By the begin of their text, last Cell first, so that a moved block is met in its order. */
  readonly #cells = new Map<string, OldCell[]>()
  /** Bounds the search among Cells that look alike, in code units compared, to some 0.2 s; past it they are embedded anew. */
  #budget = 16_000_000

  constructor(cells: readonly OldCell[]) {
    for (const cell of cells.toReversed()) {
      const key = beginOf(cell.text, 0, cell.text.length)
      const alike = this.#cells.get(key)
      if (alike) alike.push(cell)
      else this.#cells.set(key, [cell])
    }
  }

  take(page: Page, at: number, end: number, isCut: boolean): OldCell | undefined {
    const alike = this.#cells.get(beginOf(page.content, at, end)) ?? []
    for (let index = alike.length - 1; index >= 0 && this.#budget > 0; index--) {
      const cell = alike[index]
      if (!cell || !this.#isAt(page.content, cell.text, at, end)) continue
      if (!standsAt(page, cell, { start: at, end: at + cell.text.length }, isCut)) continue
      alike.splice(index, 1)
      return cell
    }
    return undefined
  }

  /** Compares the tails first, since texts that begin alike mostly end apart. */
  #isAt(content: string, text: string, at: number, end: number): boolean {
    const behind = at + text.length
    this.#budget--
    if (behind > end || !content.startsWith(text.slice(-16), Math.max(at, behind - 16))) return false
    this.#budget -= text.length
    return content.startsWith(text, at)
  }
}

/** The first line at `start`, no more than 64 units of it. */
const beginOf = (text: string, start: number, end: number): string =>
  text.slice(start, lineEnd(text, start, Math.min(start + 64, end)))

/**
 * Whether an old Cell can stand at a place of the new content that holds its text: in one part, no larger than the target,
 * between paragraph borders or cuts. `isCut` = a cut lies before the place.
 */
function standsAt(page: Page, cell: OldCell, place: Span, isCut: boolean): boolean {
  const part = page.parts[partIndex(page.parts, place.start)]
  if (!part || place.end > part.end) return false
  if (part.fence) return place.start === part.start && place.end === part.end
  return (
    (isCut || startsParagraph(page.content, part, place.start)) &&
    (cell.cutAfter || endsParagraph(page.content, part, place.end)) &&
    utf8Length(cell.text) <= page.targetBytes
  )
}

function startsParagraph(content: string, part: Part, at: number): boolean {
  if (at === part.start) return true
  if (content[at - 1] !== '\n') return false
  return isBlank(content, Math.max(part.start, content.lastIndexOf('\n', at - 2) + 1), at - 1)
}

function endsParagraph(content: string, part: Part, at: number): boolean {
  const stop = lineEnd(content, at, part.end)
  return isBlank(content, at, stop) && isBlank(content, stop + 1, lineEnd(content, stop + 1, part.end))
}

/** Start of the first paragraph behind the one at `from`, or `end`. */
function nextParagraph(content: string, from: number, end: number): number {
  let isBehind = false
  for (let line = from; line < end;) {
    const stop = lineEnd(content, line, end)
    if (isBlank(content, line, stop)) isBehind = true
    else if (isBehind) return line
    line = stop + 1
  }
  return end
}

/** Index of the first part that ends behind `at`. */
function partIndex(parts: readonly Part[], at: number): number {
  let low = 0
  let high = parts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((parts[middle]?.end ?? Infinity) > at) high = middle
    else low = middle + 1
  }
  return low
}

function commonPrefix(a: string, b: string): number {
  const max = Math.min(a.length, b.length)
  let length = 0
  while (length < max && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}

function commonSuffix(a: string, b: string, max: number): number {
  let length = 0
  while (length < max && a.charCodeAt(a.length - 1 - length) === b.charCodeAt(b.length - 1 - length)) length++
  return length
}
