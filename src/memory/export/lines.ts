import { ExportError } from './format.ts'

export interface Line {
  /** From 1. */
  number: number
  /** Without its end. */
  bytes: Uint8Array
  /** False only for the last line of a stream that does not end with a line break. */
  hasEnd: boolean
}

/** What a string can hold, and so a line. */
const LINE_MAX = 2 ** 29 - 25
const NEWLINE = 10

/** The lines of a stream; the last one may have no end. @throws ExportError for a longer line than can be held */
export async function* readLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  let number = 0
  let rest: Uint8Array[] = []
  let length = 0
  for await (const chunk of bytes) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield { number: ++number, bytes: join(rest, chunk.subarray(start, end)), hasEnd: true }
      start = end + 1
      if (rest.length > 0) rest = []
      length = 0
    }
    if (start < chunk.length) rest.push(chunk.subarray(start))
    length += chunk.length - start
    if (length > LINE_MAX) throw new ExportError(`line ${number + 1} is longer than ${LINE_MAX} bytes`)
  }
  if (length > 0) yield { number: ++number, bytes: join(rest), hasEnd: false }
}

/** Most lines lie in one chunk, and need no copy. */
const join = (rest: readonly Uint8Array[], last?: Uint8Array): Uint8Array =>
  rest.length === 0 && last ? last : Buffer.concat(last ? [...rest, last] : rest)
