/** A place in a file: `line` and `column` count from 1, columns in grapheme clusters; `byte` counts from 0. */
export interface Position {
  readonly line: number
  readonly column: number
  readonly byte: number
}

/** A stretch of a source file. Positions are worked out when asked for, since most ranges are never shown. */
export class SourceRange {
  readonly source: Source
  /** UTF-16 offsets into `source.text`, the end excluded. */
  readonly from: number
  readonly to: number

  constructor(source: Source, from: number, to: number) {
    this.source = source
    this.from = from
    this.to = to
  }

  get file(): string {
    return this.source.file
  }

  get start(): Position {
    return this.source.position(this.from)
  }

  get end(): Position {
    return this.source.position(this.to)
  }

  get text(): string {
    return this.source.text.slice(this.from, this.to)
  }

  /** `file:line:column` of the start. */
  toString(): string {
    const { line, column } = this.start
    return `${this.file}:${line}:${column}`
  }

  toJSON(): { file: string; start: Position; end: Position } {
    return { file: this.file, start: this.start, end: this.end }
  }
}

const BYTE_ORDER_MARK = 0xfeff
// oxlint-disable-next-line no-control-regex -- the class is "everything in ASCII"
const ASCII = /^[\x00-\x7f]*$/

/** One file's text with its line index. */
export class Source {
  readonly file: string
  readonly text: string
  /** Where the first token may start: behind a byte-order mark. */
  readonly start: number
  private lines: { starts: number[]; bytes: number[] } | undefined
  private lastColumn = { lineStart: -1, offset: 0, column: 1 }

  constructor(text: string, file: string) {
    this.text = text
    this.file = file
    this.start = text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0
  }

  range(from: number, to: number): SourceRange {
    return new SourceRange(this, from, to)
  }

  position(offset: number): Position {
    const { starts, bytes } = (this.lines ??= indexLines(this.text))
    const index = lastAtMost(starts, offset)
    const lineStart = starts[index] ?? 0
    const byte = (bytes[index] ?? 0) + Buffer.byteLength(this.text.slice(lineStart, offset))
    return { line: index + 1, column: this.column(Math.max(lineStart, this.start), offset), byte }
  }

  /** The text of line `line` (from 1) without its line end. */
  line(line: number): string {
    const { starts } = (this.lines ??= indexLines(this.text))
    const from = Math.max(starts[line - 1] ?? this.text.length, this.start)
    return this.text.slice(from, starts[line] ?? this.text.length).replace(/\r?\n$/, '')
  }

  /** Goes on from the last answer on the same line, so that many diagnostics on one long line stay linear. */
  private column(lineStart: number, offset: number): number {
    const last = this.lastColumn
    const known = last.lineStart === lineStart && last.offset <= offset ? last : { offset: lineStart, column: 1 }
    const column = known.column + countGraphemes(this.text.slice(known.offset, offset))
    this.lastColumn = { lineStart, offset, column }
    return column
  }
}

function indexLines(text: string): { starts: number[]; bytes: number[] } {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  if (ASCII.test(text)) return { starts, bytes: starts }
  const bytes = [0]
  for (let i = 1; i < starts.length; i++) {
    bytes.push((bytes[i - 1] ?? 0) + Buffer.byteLength(text.slice(starts[i - 1], starts[i])))
  }
  return { starts, bytes }
}

function lastAtMost(sorted: readonly number[], value: number): number {
  let low = 0
  let high = sorted.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((sorted[middle] ?? 0) <= value) low = middle
    else high = middle - 1
  }
  return low
}

/** Made when first needed: its data takes longer to load than a small file to parse. */
let segmenter: Intl.Segmenter | undefined
/** `Intl.Segmenter` is quadratic in its input (90 s for 1 MB of emoji); pieces of this size take 0.07 s. */
const PIECE = 256

/** The grapheme clusters of a text. */
export function* graphemes(text: string): Generator<string> {
  if (ASCII.test(text)) {
    yield* text
    return
  }
  const clusters = (segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' }))
  for (let at = 0; at < text.length;) {
    const segments = Array.from(clusters.segment(text.slice(at, at + PIECE)), (part) => part.segment)
    const final = at + PIECE >= text.length || segments.length === 1
    const complete = final ? segments : segments.slice(0, -1)
    for (const segment of complete) {
      yield segment
      at += segment.length
    }
  }
}

/** How many characters a person sees: columns are counted in them. */
export function countGraphemes(text: string): number {
  if (ASCII.test(text)) return text.length
  let count = 0
  const clusters = graphemes(text)
  while (!clusters.next().done) count++
  return count
}

/** Text of UTF-8 bytes, or the byte offset of the first fault. */
export function decodeUtf8(bytes: Uint8Array): { text: string } | { text: string; invalidAt: number } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
    let byte = 0
    let from = 0
    for (let at = text.indexOf('\ufffd'); at >= 0; at = text.indexOf('\ufffd', at + 1)) {
      byte += Buffer.byteLength(text.slice(from, at))
      from = at
      const genuine = bytes[byte] === 0xef && bytes[byte + 1] === 0xbf && bytes[byte + 2] === 0xbd
      if (!genuine) break
    }
    return { text: text.slice(0, from), invalidAt: byte }
  }
}
