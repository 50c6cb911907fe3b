import type { CellTable, MemoryEntry } from './cell-table.ts'
import type { LexicalIndex } from './lexical.ts'

const SAMPLES = 200
/** Where in the whole, from each sample, two Memories are taken that it has nothing to do with. */
const FAR = [1 / 3, 2 / 3]
/** Neighbours in a shuffled chat seemed up to 1.26 times as alike as any two turns; in real ones they are three times. */
const CHANCE = 1.25
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

  /** Of a stream, from 0 (neighbours are hardly more alike than any two Memories) to 1 (at least twice as alike). */
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
      const others = FAR.map((way) => all[(at + Math.floor(way * all.length)) % all.length])
      const [toNext = 0, ...toOthers] = this.#lexical.similarities(firstSlot(memory), [next, ...others].map(firstSlot))
      near += toNext
      far += toOthers.reduce((sum, likeness) => sum + likeness, 0) / FAR.length
    }
    const excess = near / far - CHANCE
    return excess > 0 ? Math.min(1, excess / (2 - CHANCE)) : 0
  }
}

const firstSlot = (memory: MemoryEntry | undefined): number => memory?.cells[0]?.slot ?? 0
