import { SourceError } from './found.ts'

/** An element of the list, as written. */
interface Element {
  /** Of the file, from 1: where it begins. */
  line: number
  json: string
}

/**
 * The elements of a JSON list, or of the list under a key of a JSON object, one by one: the file is not held whole. Each
 * element is for JSON.parse to judge. @throws SourceError when there is no such list, or it is cut off
 */
export async function* readElements(bytes: AsyncIterable<Uint8Array>, key: string): AsyncGenerator<Element> {
  const scan = new Scan(key)
  for await (const chunk of bytes) yield* scan.take(chunk)
  scan.end()
}

const [QUOTE, BACKSLASH, NEWLINE, COLON, COMMA, LIST, OBJECT, LIST_END, OBJECT_END] = Buffer.from('"\\\n:,[{]}')
const SPACES = new Set(Buffer.from(' \t\r\n'))

class Scan {
  readonly #key: string
  #line = 1
  #depth = 0
  /** Of the list's elements; 0 before and behind it. */
  #listDepth = 0
  #wasFound = false
  #inString = false
  #isEscaped = false
  /** The last string of the outer object, and whether it names what comes. */
  #string: number[] = []
  #isKey = false
  #element: Uint8Array[] = []
  /** Where the element begins; 0 until its first character. */
  #elementLine = 0

  constructor(key: string) {
    this.#key = key
  }

  *take(chunk: Uint8Array): Generator<Element> {
    let start = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      const isBetween = this.#depth === this.#listDepth && this.#depth > 0 && !this.#inString
      if (isBetween && (byte === COMMA || byte === LIST_END)) {
        yield* this.#emit(chunk.subarray(start, at))
        start = at + 1
      }
      if (this.#listDepth > 0 && this.#elementLine === 0 && !SPACES.has(byte)) this.#elementLine = this.#line
      if (isBetween && byte === COMMA) this.#elementLine = 0
      if (byte === NEWLINE) this.#line++
      if (this.#read(byte)) start = at + 1
    }
    if (this.#listDepth > 0) this.#element.push(chunk.slice(start))
  }

  /** True when the list begins behind the byte. */
  #read(byte: number): boolean {
    if (this.#inString) {
      this.#readString(byte)
      return false
    }
    if (this.#depth === 0 && byte !== LIST && byte !== OBJECT && !SPACES.has(byte)) throw noList(this.#key)
    if (byte === QUOTE) {
      this.#inString = true
      this.#string = []
    } else if (byte === COLON) {
      this.#isKey = this.#depth === 1 && Buffer.from(this.#string).toString() === this.#key
    } else if (byte === LIST || byte === OBJECT) {
      this.#depth++
      const isIt = byte === LIST && (this.#depth === 1 || (this.#depth === 2 && this.#isKey))
      this.#isKey = false
      if (!isIt || this.#wasFound) return false
      this.#wasFound = true
      this.#listDepth = this.#depth
      return true
    } else if (byte === LIST_END || byte === OBJECT_END) {
      if (this.#depth === this.#listDepth) this.#listDepth = 0
      this.#depth--
    }
    return false
  }

  #readString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) this.#inString = false
    if (this.#inString && this.#depth === 1 && this.#listDepth === 0) this.#string.push(byte)
  }

  *#emit(last: Uint8Array): Generator<Element> {
    const json = Buffer.concat([...this.#element, last]).toString('utf8')
    this.#element = []
    if (json.trim() !== '') yield { line: this.#elementLine, json }
  }

  end(): void {
    if (!this.#wasFound) throw noList(this.#key)
    if (this.#depth > 0) throw new SourceError(`it is cut off in line ${this.#line}`)
  }
}

const noList = (key: string): SourceError =>
  new SourceError(`it is neither a JSON list nor a JSON object with a list under "${key}"`)
