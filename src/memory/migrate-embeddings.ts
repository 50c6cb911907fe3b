import { errorText } from '../base/errors.ts'
import { rest } from '../base/rest.ts'
import type { Caller } from './caller.ts'
import type { Embedder } from './embedder/types.ts'
import type { Embedding } from './embedding.ts'
import type { EmbedQueue } from './embed-queue.ts'
import type { Workspace } from './model.ts'
import type { Mutations } from './mutation.ts'
import type { Logger } from './ports.ts'
import type { Seams } from './seams.ts'
import type { CellRow } from './store/cells.ts'
import { countMemories, type MemoryRow } from './store/memories.ts'
import { findCellsOf, findMemoriesAfter, type Position } from './store/migration.ts'

/** Memories between two reports, and read at once. */
const REPORTED = 100
/** What was embedded is stored as often: a built-in embedder gives a batch in 2 ms, a commit takes as long. */
const STORED_MS = 500
/** A provider that fails so often in a row is down. */
const FAILURES = 3

export interface MigrationOptions {
  /** Counts, and writes nothing. */
  dryRun: boolean
  /** Memories a second at most; 0 = no limit. */
  maxRate: number
  report: (state: MigrationState) => void
}

/** In Memories: `migrated` got vectors (in a dry run: would get), `skipped` had them all. */
export interface MigrationState {
  event: 'progress' | 'complete' | 'interrupted'
  total: number
  migrated: number
  skipped: number
  errors: number
  /** The first Memory that is not done. */
  resume_token?: string
}

interface MigrationParts {
  seams: Seams
  mutations: Mutations
  embedding: Embedding
  queue: EmbedQueue
  log: Logger
}

/** A Memory with its Cells, those of them that have no vector of the model, and what became of it. */
interface Surveyed {
  memory: MemoryRow
  cells: CellRow[]
  lacking: CellRow[]
  outcome: 'skipped' | 'untried' | 'migrated' | 'failed'
}

/** Brings the vectors of a workspace to its current model. Contract: memory.md 6.4, 11.4. */
export class MigrateEmbeddings {
  readonly #parts: MigrationParts

  constructor(parts: MigrationParts) {
    this.#parts = parts
  }

  /**
   * Embeds every Cell without a vector of the model and removes other vectors, the oldest Memory first. Each Memory is done
   * on its own, so a run may end anywhere (`caller.signal` ends it in order) and another one goes on with the rest. Where
   * the provider fails, Memories are passed over (`errors`); when it is down, the run ends (`interrupted`).
   */
  async run(caller: Caller, workspace: Workspace, options: MigrationOptions): Promise<MigrationState> {
    const { seams, embedding } = this.#parts
    const { dryRun, maxRate, report } = options
    const embedder = embedding.of(workspace)
    const total = await countMemories(seams.metadata, workspace.id)
    const state: MigrationState = { event: 'complete', total, migrated: 0, skipped: 0, errors: 0 }
    const start = performance.now()
    let removed = 0
    let done = 0
    for await (const page of this.#pages(workspace.id, embedder.model, maxRate)) {
      if (dryRun) markMigrated(page, caller.signal)
      else {
        await this.#embed(workspace.id, embedder, page, caller.signal)
        removed += await this.#removeOthers(page, embedder.model)
      }
      count(state, page)
      if (page.some(({ outcome }) => outcome === 'untried')) {
        state.event = 'interrupted'
        break
      }
      if (Math.floor((done + page.length) / REPORTED) > Math.floor(done / REPORTED)) {
        report({ ...state, event: 'progress' })
      }
      done += page.length
      if (maxRate > 0) await rest(start + (state.migrated / maxRate) * 1000 - performance.now(), caller.signal)
    }
    if (!dryRun && state.migrated + removed > 0) await this.#record(caller, workspace.id, state)
    return state
  }

  async *#pages(workspaceId: string, model: string, maxRate: number): AsyncGenerator<Surveyed[]> {
    const { metadata } = this.#parts.seams
    const size = maxRate > 0 ? Math.min(maxRate, REPORTED) : REPORTED
    let position: Position = [Number.MIN_SAFE_INTEGER, '']
    for (;;) {
      const memories = await findMemoriesAfter(metadata, workspaceId, position, size)
      const last = memories.at(-1)
      if (!last) return
      yield await this.#survey(memories, model)
      position = [last.created_at, last.memory_id]
    }
  }

  async #survey(memories: readonly MemoryRow[], model: string): Promise<Surveyed[]> {
    const { metadata, vector, vectors } = this.#parts.seams
    const cells = new Map(memories.map(({ memory_id: id }) => [id, new Array<CellRow>()]))
    for (const cell of await findCellsOf(metadata, [...cells.keys()])) cells.get(cell.memory_id)?.push(cell)
    const embedded = await vectors.findEmbedded(vector, model, numbersOf([...cells.values()].flat()))
    return memories.map((memory) => {
      const own = cells.get(memory.memory_id) ?? []
      const lacking = own.filter(({ cell_no: cellNo }) => !embedded.has(cellNo))
      const isDone = own.length === 0 || (lacking.length === 0 && memory.embedded_model === model)
      return { memory, cells: own, lacking, outcome: isDone ? 'skipped' : 'untried' }
    })
  }

  /** Memories that fail together are tried one by one, so that one bad text holds up no other. */
  async #embed(workspaceId: string, embedder: Embedder, page: Surveyed[], signal: AbortSignal): Promise<void> {
    const untried = (): Surveyed[] => page.filter(({ outcome }) => outcome === 'untried')
    if (await this.#embedTogether(workspaceId, embedder, untried(), signal)) return
    let failures = 0
    for (const memory of untried()) {
      if (failures === FAILURES || signal.aborted) return
      if (await this.#embedTogether(workspaceId, embedder, [memory], signal)) failures = 0
      else if (!signal.aborted) {
        memory.outcome = 'failed'
        failures++
      }
    }
  }

  /** Stores each Memory as soon as the vectors of all its texts are there. False when the provider failed. */
  async #embedTogether(
    workspaceId: string,
    embedder: Embedder,
    memories: readonly Surveyed[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { embedding, log, seams } = this.#parts
    const vectors = new Map<string, Float32Array>()
    const texts = new Map<number, string>()
    let stored = performance.now()
    const textOf = ({ cell_no: cellNo }: CellRow): string => texts.get(cellNo) ?? ''
    const storeComplete = async (): Promise<void> => {
      const complete = memories.filter(
        ({ outcome, lacking }) =>
          outcome === 'untried' && lacking.every((cell) => !texts.has(cell.cell_no) || vectors.has(textOf(cell))),
      )
      await this.#store(workspaceId, embedder.model, complete, (cell) => vectors.get(textOf(cell)))
      for (const memory of complete) memory.outcome = 'migrated'
    }
    try {
      const lacking = memories.flatMap((memory) => memory.lacking)
      for (const { cell_no: cellNo, text } of await seams.bodies.texts(lacking)) texts.set(cellNo, text)
      await storeComplete()
      try {
        for await (const batch of embedding.batches(embedder, [...texts.values()], signal)) {
          for (const [text, vector] of batch) vectors.set(text, vector)
          if (performance.now() - stored < STORED_MS) continue
          await storeComplete()
          stored = performance.now()
        }
      } finally {
        await storeComplete()
      }
      return true
    } catch (error) {
      if (!signal.aborted) log.warn({ model: embedder.model, reason: errorText(error) }, 'embedding failed')
      return false
    }
  }

  async #store(
    workspaceId: string,
    model: string,
    memories: readonly Surveyed[],
    vectorOf: (cell: CellRow) => Float32Array | undefined,
  ): Promise<void> {
    const cells = memories.flatMap((memory) => memory.cells)
    if (cells.length === 0) return
    const { seams } = this.#parts
    const present = await seams.vectors.find(seams.vector, model, numbersOf(cells))
    const cellVectors = cells.flatMap((cell) => {
      const vector = present.get(cell.cell_no) ?? vectorOf(cell)
      return vector ? [{ cellNo: cell.cell_no, vector }] : []
    })
    await this.#parts.queue.complete(workspaceId, model, cellVectors)
  }

  async #removeOthers(page: readonly Surveyed[], model: string): Promise<number> {
    const done = page.filter(({ outcome }) => outcome === 'skipped' || outcome === 'migrated')
    const cellNos = numbersOf(done.flatMap(({ cells }) => cells))
    const { vector, vectors } = this.#parts.seams
    return vector.transaction((tx) => vectors.deleteOthers(tx, model, cellNos))
  }

  /** One entry a run, also of one that was interrupted. */
  async #record(caller: Caller, workspaceId: string, { total, migrated, errors }: MigrationState): Promise<void> {
    const unhurried = { ...caller, signal: new AbortController().signal }
    await this.#parts.mutations.run(unhurried, workspaceId, async (mutation) => {
      mutation.record('migrate_embeddings', { target: workspaceId, metadata: { total, migrated, errors } })
    })
  }
}

function markMigrated(page: readonly Surveyed[], signal: AbortSignal): void {
  for (const each of page) if (each.outcome === 'untried' && !signal.aborted) each.outcome = 'migrated'
}

function count(state: MigrationState, page: readonly Surveyed[]): void {
  for (const { outcome, memory } of page) {
    if (outcome === 'skipped') state.skipped++
    if (outcome === 'migrated') state.migrated++
    if (outcome === 'failed') state.errors++
    if (outcome === 'failed' || outcome === 'untried') state.resume_token ??= memory.memory_id
  }
}

const numbersOf = (cells: readonly CellRow[]): number[] => cells.map((cell) => cell.cell_no)
