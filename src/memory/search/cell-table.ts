import { speakerOf } from './speakers.ts'
import type { CellDocument, SearchFilter } from './types.ts'

const SPEAKER_CELLS = 5

export interface CellEntry {
  readonly cellNo: number
  /** Where the Cell stands in the arrays of the index. */
  readonly slot: number
  readonly memory: MemoryEntry
  /** Who speaks, if the text begins like a turn of a conversation. */
  readonly speaker: string | undefined
  seq: number
}

export interface MemoryEntry {
  readonly id: string
  /** Small and dense: an index for arrays over Memories. */
  readonly number: number
  readonly agentId: string
  readonly createdAt: number
  /** All Memories of its collection (or of none), in the order they were written. */
  readonly stream: MemoryEntry[]
  /** In `seq` order. */
  readonly cells: CellEntry[]
}

/** Which Cells a workspace has, to which Memory each belongs, and which Memories were written before and after it. */
export class CellTable {
  readonly #cells = new Map<number, CellEntry>()
  readonly #memories = new Map<string, MemoryEntry>()
  readonly #streams = new Map<string | null, MemoryEntry[]>()
  /** How many Cells each speaker has. */
  readonly #speakers = new Map<string, number>()
  readonly #slots = new Numbers<CellEntry>()
  readonly #numbers = new Numbers<MemoryEntry>()
  #memoryAt = new Int32Array(64)
  /** By Memory number. */
  readonly #streamOf: MemoryEntry[][] = []
  #times = new Float64Array(64)
  #best = new Float32Array(0)
  #bestSlots = new Uint32Array(0)
  #passed = new Uint32Array(0)

  /** Cells held. */
  get size(): number {
    return this.#cells.size
  }

  /** The number of the Cell that was added first. */
  get oldest(): number | undefined {
    return this.#cells.keys().next().value
  }

  /** Slots ever used: the length of an array by slot. */
  get slots(): number {
    return this.#slots.end
  }

  /** The same for arrays by Memory number. */
  get numbers(): number {
    return this.#numbers.end
  }

  /** By slot: the number of its Memory. Free slots hold anything. */
  get memoryAt(): Int32Array {
    return this.#memoryAt
  }

  /**
   * As long as there are Memories, for one pass over Cells: zeros by Memory number, to be left as zeros; and twice anything.
   * Kept from pass to pass, as the collector likes it.
   */
  passArrays(): { best: Float32Array; slots: Uint32Array; numbers: Uint32Array } {
    if (this.#best.length < this.numbers) {
      this.#best = new Float32Array(Math.ceil(this.numbers * 1.5))
      this.#bestSlots = new Uint32Array(this.#best.length)
      this.#passed = new Uint32Array(this.#best.length)
    }
    return { best: this.#best, slots: this.#bestSlots, numbers: this.#passed }
  }

  cell(cellNo: number): CellEntry | undefined {
    return this.#cells.get(cellNo)
  }

  memory(memoryId: string): MemoryEntry | undefined {
    return this.#memories.get(memoryId)
  }

  /** @throws TypeError when the slot is free */
  at(slot: number): CellEntry {
    return this.#slots.at(slot)
  }

  /** @throws TypeError when the number is free */
  memoryNumbered(number: number): MemoryEntry {
    return this.#numbers.at(number)
  }

  /** All Memories of the collection of one, by its number. */
  streamOf(number: number): MemoryEntry[] {
    return this.#streamOf[number] ?? []
  }

  /** Whether the id of one Memory is after that of another, both by number. Most ids differ in the times they begin with. */
  comesAfter(a: number, b: number): boolean {
    const time = this.#times[a] ?? NaN
    const other = this.#times[b] ?? NaN
    return time > other || (!(time < other) && this.memoryNumbered(a).id > this.memoryNumbered(b).id)
  }

  add(cell: CellDocument): CellEntry {
    const memory = this.#memories.get(cell.memoryId) ?? this.#addMemory(cell)
    const { cellNo, seq } = cell
    const speaker = speakerOf(cell.text)
    const entry = this.#slots.take((slot) => ({ cellNo, slot, memory, speaker, seq }))
    this.#countSpeaker(speaker, 1)
    if (entry.slot >= this.#memoryAt.length) {
      const grown = new Int32Array(Math.ceil(entry.slot * 1.5))
      grown.set(this.#memoryAt)
      this.#memoryAt = grown
    }
    this.#memoryAt[entry.slot] = memory.number
    this.#cells.set(cellNo, entry)
    const last = memory.cells.at(-1)
    memory.cells.push(entry)
    if (last && last.seq > seq) memory.cells.sort(bySeq)
    return entry
  }

  move(cell: CellEntry, seq: number): void {
    cell.seq = seq
    cell.memory.cells.sort(bySeq)
  }

  remove(cell: CellEntry): void {
    const { memory, speaker } = cell
    this.#countSpeaker(speaker, -1)
    this.#cells.delete(cell.cellNo)
    this.#slots.free(cell.slot)
    memory.cells.splice(memory.cells.indexOf(cell), 1)
    if (memory.cells.length > 0) return
    this.#memories.delete(memory.id)
    this.#numbers.free(memory.number)
    memory.stream.splice(position(memory), 1)
  }

  /** Streams of one Memory or more, by collection id, that of no collection first. */
  streams(): MemoryEntry[][] {
    return [...this.#streams]
      .sort(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1))
      .map(([, stream]) => stream)
      .filter((stream) => stream.length > 0)
  }

  /** Whether any text begins like a turn of a conversation. */
  get hasSpeakers(): boolean {
    return this.#speakers.size > 0
  }

  /** Who speaks in a Memory. One who does so in fewer than five Cells is a heading, not a speaker. */
  speaker({ cells }: MemoryEntry): string | undefined {
    const name = cells[0]?.speaker
    return name !== undefined && (this.#speakers.get(name) ?? 0) >= SPEAKER_CELLS ? name : undefined
  }

  /** 1 at each slot whose Memory passes; absent = all pass. */
  mask(filter: SearchFilter | undefined): Uint8Array | undefined {
    if (!filter || Object.keys(filter).length === 0) return undefined
    const mask = new Uint8Array(this.slots)
    for (const memory of this.#narrowed(filter)) {
      if (memory && passes(memory, filter)) for (const { slot } of memory.cells) mask[slot] = 1
    }
    return mask
  }

  #countSpeaker(name: string | undefined, change: 1 | -1): void {
    if (name === undefined) return
    const count = (this.#speakers.get(name) ?? 0) + change
    if (count === 0) this.#speakers.delete(name)
    else this.#speakers.set(name, count)
  }

  /** The fewest Memories that hold all that can pass. */
  #narrowed({ collectionId, memoryIds }: SearchFilter): Iterable<MemoryEntry | undefined> {
    const stream = collectionId === undefined ? undefined : (this.#streams.get(collectionId) ?? [])
    if (!memoryIds) return stream ?? this.#numbers.items
    const named = Array.from(memoryIds, (id) => this.#memories.get(id))
    return stream ? named.filter((memory) => memory?.stream === stream) : named
  }

  #addMemory({ memoryId: id, collectionId, agentId, createdAt }: CellDocument): MemoryEntry {
    let stream = this.#streams.get(collectionId)
    if (!stream) this.#streams.set(collectionId, (stream = []))
    const home = stream
    const memory = this.#numbers.take((number) => ({ id, number, agentId, createdAt, stream: home, cells: [] }))
    if (memory.number >= this.#times.length) {
      const grown = new Float64Array(Math.ceil(memory.number * 1.5))
      grown.set(this.#times)
      this.#times = grown
    }
    this.#times[memory.number] = timeIn(id)
    this.#streamOf[memory.number] = home
    this.#memories.set(id, memory)
    stream.splice(position(memory), 0, memory)
    return memory
  }
}

/** Where the Memory stands, or would stand, in its stream. */
export function position(memory: MemoryEntry): number {
  const { stream } = memory
  // Mostly it comes last, which a million others need not be asked about.
  const last = stream.at(-1)
  if (last && isBefore(last, memory)) return stream.length
  let low = 0
  let high = stream.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = stream[middle]
    if (other && isBefore(other, memory)) low = middle + 1
    else high = middle
  }
  return low
}

/** The time that an id of ours begins with; NaN of any other. */
function timeIn(id: string): number {
  const digits = ULID_TIME.exec(id)?.[1] ?? ''
  let time = digits === '' ? NaN : 0
  for (const digit of digits) time = 32 * time + BASE32.indexOf(digit)
  return time
}

const BASE32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID_TIME = /^mem_([0-9A-HJKMNP-TV-Z]{10})/

const isBefore = (a: MemoryEntry, b: MemoryEntry): boolean =>
  a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.id < b.id)

const bySeq = (a: CellEntry, b: CellEntry): number => a.seq - b.seq

function passes({ agentId, createdAt }: MemoryEntry, filter: SearchFilter): boolean {
  return (
    (!filter.agentIn || filter.agentIn.has(agentId)) &&
    !filter.agentNotIn?.has(agentId) &&
    createdAt >= (filter.after ?? -Infinity) &&
    createdAt < (filter.before ?? Infinity)
  )
}

/** Gives out small numbers and takes them back. */
class Numbers<T> {
  /** By number; undefined where one is free. */
  readonly items: (T | undefined)[] = []
  readonly #released: number[] = []

  get end(): number {
    return this.items.length
  }

  at(number: number): T {
    const item = this.items[number]
    if (item === undefined) throw new TypeError(`nothing has number ${number}`)
    return item
  }

  take(make: (number: number) => T): T {
    const number = this.#released.pop() ?? this.items.length
    return (this.items[number] = make(number))
  }

  free(number: number): void {
    this.items[number] = undefined
    this.#released.push(number)
  }
}
