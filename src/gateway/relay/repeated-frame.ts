import { stringEnd, valueAt } from './frames.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const NOTHING = Buffer.alloc(0)
/** Frames in a row that were not foreseen: others will not be either. */
const MAX_MISSES = 8

/**
 * The frames of a stream mostly differ in one string. What stands around that of the last one, which said nothing else,
 * tells of the next one with two comparisons that it says nothing else either.
 */
export class RepeatedFrame {
  #before = NOTHING
  #after = NOTHING
  #misses = 0

  /** UTF-8 bytes of the string of a frame that is the last one but for it; -1 for anything else. */
  bytesOf(chunk: Buffer): number {
    const [before, after] = [this.#before, this.#after]
    const end = chunk.length - after.length
    if (before.length === 0 || end < before.length) return -1
    if (chunk.compare(before, 0, before.length, 0, before.length) !== 0) return -1
    if (chunk.compare(after, 0, after.length, end, chunk.length) !== 0) return -1
    for (let at = before.length; at < end; at++) {
      const byte = chunk[at]
      if (byte === undefined || byte === QUOTE || byte === BACKSLASH || byte < SPACE) return -1
    }
    this.#misses = 0
    return end - before.length
  }

  /** Remembers a frame that says nothing but a string, a member of one of these names. @param raw as Latin-1 */
  learn(raw: string, names: readonly string[]): void {
    if (++this.#misses > MAX_MISSES) return
    const [at, ...others] = names.map((name) => valueAt(raw, name)).filter((each) => isText(raw, each))
    if (at === undefined || others.length > 0) return
    this.#before = Buffer.from(raw.slice(0, at + 1), 'latin1')
    this.#after = Buffer.from(raw.slice(stringEnd(raw, at) - 1), 'latin1')
  }
}

/** A string that is not empty begins here. */
const isText = (raw: string, at: number): boolean => raw.charCodeAt(at) === QUOTE && raw.charCodeAt(at + 1) !== QUOTE
