import { setImmediate } from 'node:timers/promises'
import { KeyedMutex } from '../../base/keyed-mutex.ts'
import { HASH_MODEL } from '../embedder/hash.ts'
import type { SearchIndex } from '../ports.ts'
import type { Rescore } from './signals.ts'
import type { CellSource, IndexSizes, SearchAnswer, SearchQuery } from './types.ts'
import { WorkspaceIndex } from './workspace-index.ts'

/** Cells taken in between two turns of the event loop: some 2 ms. */
const SLICE = 20

interface Held {
  model: string
  index: WorkspaceIndex
  /** Changes up to here are in the index. */
  seq: number
  /** Of the source, when it was last asked. */
  version?: number | undefined
}

/**
 * The indexes of the workspaces searched last, in the thread of the caller. Before each search the index takes in what
 * changed in the source since the last one; the first search fills it. One search of a workspace at a time.
 */
export class LocalSearch implements SearchIndex {
  readonly #source: CellSource
  readonly #maxCells: number
  /** The least recently used first. */
  readonly #held = new Map<string, Held>()
  readonly #mutex = new KeyedMutex()

  /** @param maxCells of all indexes together; the last used one stays whatever its size */
  constructor(source: CellSource, maxCells: number) {
    this.#source = source
    this.#maxCells = maxCells
  }

  /** Filling an index goes on when the signal ends the search that began it. */
  search(workspaceId: string, model: string, query: SearchQuery, signal: AbortSignal): Promise<SearchAnswer> {
    const waits = this.#mutex.isTaken(workspaceId)
    return this.#mutex.run(workspaceId, async () => {
      // A turn of the event loop in which the signals of those who wait can come in.
      if (waits) await setImmediate()
      signal.throwIfAborted()
      const index = await this.#current(workspaceId, model)
      signal.throwIfAborted()
      return index.search(query)
    })
  }

  /** Cells in the index of a workspace; undefined when there is none. */
  size(workspaceId: string): number | undefined {
    return this.#held.get(workspaceId)?.index.size
  }

  /** Of all indexes together. */
  sizes(): IndexSizes {
    const held = [...this.#held.values()]
    return { indexes: held.length, cells: held.reduce((sum, { index }) => sum + index.size, 0) }
  }

  forget(workspaceId: string): void {
    this.#held.delete(workspaceId)
  }

  close(): Promise<void> {
    this.#held.clear()
    return this.#source.close()
  }

  #hold(workspaceId: string, model: string): Held {
    const known = this.#held.get(workspaceId)
    const held = known?.model === model ? known : this.#create(workspaceId, model)
    this.#held.delete(workspaceId)
    this.#held.set(workspaceId, held)
    return held
  }

  #create(workspaceId: string, model: string): Held {
    const { cosines } = this.#source
    const rescore: Rescore | undefined = cosines && ((query, cellNos) => cosines(model, query, cellNos))
    const database = this.#source.vectorSearch?.(workspaceId, model)
    return { model, index: new WorkspaceIndex({ rescore, database, isSparse: model === HASH_MODEL }), seq: 0 }
  }

  /** Brings the index up to date, and gives the one to search: a new one when its workspace was replaced by another. */
  async #current(workspaceId: string, model: string): Promise<WorkspaceIndex> {
    const held = this.#hold(workspaceId, model)
    const hasChanged = await this.#update(workspaceId, held)
    const { oldest } = held.index
    if (!hasChanged || oldest === undefined || (await this.#source.has(oldest))) return held.index
    this.#held.delete(workspaceId)
    return this.#current(workspaceId, model)
  }

  /** Tells whether there was anything to take in. */
  async #update(workspaceId: string, held: Held): Promise<boolean> {
    const version = this.#source.version()
    if (version !== undefined && version === held.version) return false
    let hasChanged = false
    for await (const { seq, memories } of this.#source.changes(workspaceId, held.model, held.seq)) {
      hasChanged = true
      let cells = 0
      for (const memory of memories) {
        held.index.apply([memory])
        cells += memory.cells.length
        if (cells < SLICE) continue
        cells = 0
        await setImmediate()
      }
      held.seq = seq
      this.#makeRoom()
    }
    held.version = version
    return hasChanged
  }

  #makeRoom(): void {
    let { cells } = this.sizes()
    for (const [workspaceId, { index }] of this.#held) {
      if (cells <= this.#maxCells || this.#held.size === 1) return
      this.#held.delete(workspaceId)
      cells -= index.size
    }
  }
}
