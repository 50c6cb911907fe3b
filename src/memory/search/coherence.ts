import type { CellTable, MemoryEntry } from './cell-table.ts'
import type { LexicalIndex } from './lexical.ts'

/** Pairs compared. More moved the answer by less than 0.1 on chats and on abstracts. */
const SAMPLES = 100
/** A shorter stream is judged together with all others. */
const OWN_JUDGEMENT = 64

/**
 * Whether Memories written one after the other belong together, as the turns of a conversation do and a pile of documents
 * does not. Without it, context would help one and harm the other. It follows from the Cells alone, not from their history.
 */
export class Coherence {
  readonly #table: CellTable
  readonly #lexical: LexicalIndex
  readonly #known = new Map<MemoryEntry[] | null, number>()

  constructor(table: CellTable, lexical: LexicalIndex) {
    this.#table = table
    this.#lexical = lexical
  }

  /** Of a stream, from 0 (neighbours are no more alike than any two Memories) to 1 (at least twice as alike). */
  of(stream: MemoryEntry[]): number {
    const key = stream.length >= OWN_JUDGEMENT ? stream : null
    let coherence = this.#known.get(key)
    if (coherence === undefined) {
      coherence = this.#measure(key ? [key] : this.#table.streams())
      this.#known.set(key, coherence)
    }
    return coherence
  }

  /** To be called after each change. */
  forget(): void {
    this.#known.clear()
  }

  #measure(streams: readonly MemoryEntry[][]): number {
    const all = streams.flat()
    if (all.length < OWN_JUDGEMENT) return 0
    let near = 0
    let far = 0
    for (let sample = 0; sample < SAMPLES; sample++) {
      const at = Math.floor(((sample + 0.5) / SAMPLES) * all.length)
      const memory = all[at]
      const next = all[at + 1]
      if (!memory || memory.stream !== next?.stream) continue
      near += this.#likeness(memory, next)
      far += this.#likeness(memory, all[(at + (all.length >> 1)) % all.length])
    }
    return far > 0 ? Math.min(1, Math.max(0, near / far - 1)) : 0
  }

  #likeness(a: MemoryEntry, b: MemoryEntry | undefined): number {
    const [first] = a.cells
    const [second] = b?.cells ?? []
    return first && second ? this.#lexical.similarity(first.slot, second.slot) : 0
  }
}
