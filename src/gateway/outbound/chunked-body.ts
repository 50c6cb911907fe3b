import { broken } from './answer-head.ts'

/** From one chunk to the next; of trailers, which nobody reads, all together. */
const MOST_BYTES = 16 * 1024
const LF = 0x0a
const SIZE = /^([\da-f]{1,8})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r$/i

/** A body in chunks, from bytes in any pieces. Source: RFC 9112, section 7.1. */
export class ChunkedBody {
  #expects: 'size' | 'content' | 'end_of_chunk' | 'trailer' | 'nothing' = 'size'
  /** Of the chunk. */
  #left = 0
  /** The begin of a line. */
  #held = ''
  #beside = 0

  get isOver(): boolean {
    return this.#expects === 'nothing'
  }

  /**
   * @param tell is given what the chunks hold
   * @returns where the body ends, or the bytes do
   * @throws NetworkError `EPROTO`
   */
  read(bytes: Buffer, from: number, tell: (content: Buffer) => void): number {
    let at = from
    while (at < bytes.length && this.#expects !== 'nothing') {
      at = this.#expects === 'content' ? this.#content(bytes, at, tell) : this.#line(bytes, at)
    }
    return at
  }

  #content(bytes: Buffer, at: number, tell: (content: Buffer) => void): number {
    const end = Math.min(bytes.length, at + this.#left)
    this.#left -= end - at
    if (this.#left === 0) this.#expects = 'end_of_chunk'
    tell(bytes.subarray(at, end))
    return end
  }

  #line(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(LF, at)
    const end = feed < 0 ? bytes.length : feed
    this.#beside += end - at
    if (this.#beside > MOST_BYTES) throw broken('there is too much beside the content of its chunks')
    this.#held += bytes.toString('latin1', at, end)
    if (feed < 0) return end
    const line = this.#held
    this.#held = ''
    this.#take(line)
    return feed + 1
  }

  /** @param line with its carriage return */
  #take(line: string): void {
    if (this.#expects === 'size') {
      const [, size] = SIZE.exec(line) ?? []
      if (size === undefined) throw broken('a chunk has no size')
      this.#beside = 0
      this.#left = parseInt(size, 16)
      this.#expects = this.#left > 0 ? 'content' : 'trailer'
    } else if (this.#expects === 'end_of_chunk') {
      if (line !== '\r') throw broken('a chunk is longer than its size')
      this.#expects = 'size'
    } else if (line === '\r') this.#expects = 'nothing'
  }
}
