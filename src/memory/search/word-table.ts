/** A power of two. */
const SLOTS = 131_072
const WORDS = 90_000
const BYTES = 900_000
const LONGEST = 255

/** By character code below 128: its lower case where it is a letter or digit, else 0. */
const LETTERS = Uint8Array.from({ length: 128 }, (_, code) =>
  /[a-z0-9]/i.test(String.fromCharCode(code)) ? String.fromCharCode(code).toLowerCase().charCodeAt(0) : 0,
)

/**
 * Remembers a number for each word of ASCII letters and digits, and finds it without cutting the word out of its text:
 * 12 bytes and its letters a word. When it is full it forgets all.
 */
export class WordTable {
  readonly #hashes = new Uint32Array(SLOTS)
  readonly #numbers = new Uint32Array(SLOTS)
  readonly #starts = new Uint32Array(SLOTS)
  readonly #lengths = new Uint8Array(SLOTS)
  readonly #bytes = new Uint8Array(BYTES)
  #words = 0
  #end = 0

  clear(): void {
    if (this.#words > 0) this.#hashes.fill(0)
    this.#words = 0
    this.#end = 0
  }

  /**
   * Calls `take` with the number of each word of a text in its order, and `numberOf` for those that it does not remember.
   * @param text of ASCII characters alone
   */
  read(text: string, numberOf: (word: string) => number, take: (number: number) => void): void {
    let start = -1
    let hash = SEED
    for (let at = 0; at <= text.length; at++) {
      const letter = at < text.length ? (LETTERS[text.charCodeAt(at)] ?? 0) : 0
      if (letter !== 0) {
        if (start < 0) start = at
        hash = Math.imul(hash ^ letter, PRIME)
      } else if (start >= 0) {
        take(this.#find(text, start, at, hash >>> 0 || 1, numberOf))
        start = -1
        hash = SEED
      }
    }
  }

  #find(text: string, start: number, end: number, hash: number, numberOf: (word: string) => number): number {
    let slot = (hash ^ (hash >>> 16)) & (SLOTS - 1)
    for (; this.#hashes[slot] !== 0; slot = (slot + 1) & (SLOTS - 1)) {
      if (this.#hashes[slot] === hash && this.#isAt(slot, text, start, end)) return this.#numbers[slot] ?? 0
    }
    const word = text.slice(start, end).toLowerCase()
    const number = numberOf(word)
    if (word.length <= LONGEST) this.#remember(slot, hash, word, number)
    return number
  }

  #isAt(slot: number, text: string, start: number, end: number): boolean {
    const length = end - start
    if (this.#lengths[slot] !== length) return false
    const from = this.#starts[slot] ?? 0
    for (let i = 0; i < length; i++) {
      if (this.#bytes[from + i] !== LETTERS[text.charCodeAt(start + i)]) return false
    }
    return true
  }

  #remember(slot: number, hash: number, word: string, number: number): void {
    if (this.#words === WORDS || this.#end + word.length > BYTES) return this.clear()
    this.#hashes[slot] = hash
    this.#numbers[slot] = number
    this.#starts[slot] = this.#end
    this.#lengths[slot] = word.length
    for (let i = 0; i < word.length; i++) this.#bytes[this.#end++] = word.charCodeAt(i)
    this.#words++
  }
}

/** FNV-1a. */
const SEED = 0x811c9dc5
const PRIME = 0x01000193
