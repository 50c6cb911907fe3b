import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { IdSource } from '../base/ids.ts'
import { rootSpan } from '../base/trace.ts'
import type { AutoLink } from './auto-link.ts'
import type { Caller } from './caller.ts'
import type { Embedder } from './embedder/types.ts'
import type { Embedding } from './embedding.ts'
import { SYSTEM_AGENT } from './model.ts'
import type { Mutation, Mutations } from './mutation.ts'
import type { Logger } from './ports.ts'
import type { Seams } from './seams.ts'
import { countUnembedded, findCells, findCellsByNo, findUnmarked, markEmbedded } from './store/cells.ts'
import { deleteJobs, extendLeases, leaseJobs, nextJobAt, rescheduleJobs, type EmbedJob } from './store/jobs.ts'
import { findMemory, setEmbedded, takeAutoLink } from './store/memories.ts'
import type { CellVector } from './store/vector/vector-store.ts'
import { findWorkspace } from './store/workspaces.ts'

const BATCH = 64
/** A process that dies loses its jobs to the next one after this; one that lives renews its leases three times as often. */
const LEASE_MS = 10_000
/** How long the end of the program waits for them. */
const ARRIVE_MS = 5000
/** Jobs that another process wrote are met at least this often. */
const POLL_MS = 15_000
const FAILURES_TOLD = 3
const DELAY_MS = { first: 2000, most: 15 * 60_000 }

/** Delay after the n-th failure: 2 s, 4 s, 8 s, … 15 min. */
const delayAfter = (failures: number): number => Math.min(DELAY_MS.first * 2 ** (failures - 1), DELAY_MS.most)

interface QueueParts {
  seams: Seams
  mutations: Mutations
  embedding: Embedding
  autoLink: AutoLink
  clock: Clock
  ids: IdSource
  log: Logger
}

/**
 * Gives Cells their vectors when the write could not: jobs are rows, written with the mutation, so a restart goes on
 * with them. Contract: memory.md 6.3.
 */
export class EmbedQueue {
  readonly #parts: QueueParts
  readonly #abort = new AbortController()
  readonly #handovers = new Set<Promise<unknown>>()
  #running: Promise<void> | undefined
  #again = false
  #timer: NodeJS.Timeout | undefined

  constructor(parts: QueueParts) {
    this.#parts = parts
  }

  /** Looks for work now, and again whenever a job falls due. */
  wake(): void {
    if (this.#abort.signal.aborted) return
    this.#again = true
    this.#running ??= this.#work().finally(() => (this.#running = undefined))
  }

  /** Vectors that a write has, but that belong in another database: puts them there and marks their Cells. */
  takeOver(workspaceId: string, model: string, vectors: readonly CellVector[]): void {
    if (vectors.length > 0 && !this.#abort.signal.aborted) {
      const handover = this.#completeDue(workspaceId, model, vectors).catch(this.#logFailure)
      this.#handovers.add(handover)
      void handover.finally(() => this.#handovers.delete(handover))
    }
    this.wake()
  }

  /** Vectors on their way to another database arrive, or are left to the next process, which takes them up later. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    const late = new AbortController()
    const arrived = Promise.all(this.#handovers)
    await Promise.race([arrived, sleep(ARRIVE_MS, undefined, { signal: late.signal }).catch(() => undefined)])
    late.abort()
    this.#abort.abort()
    clearTimeout(this.#timer)
    await this.#running
    await Promise.all(this.#handovers)
  }

  readonly #logFailure = (error: unknown): void => {
    this.#parts.log.error({ reason: errorText(error) }, 'the embedding queue met a fault and goes on')
  }

  async #work(): Promise<void> {
    clearTimeout(this.#timer)
    try {
      while (this.#again && !this.#abort.signal.aborted) {
        this.#again = false
        while (!this.#abort.signal.aborted && (await this.#turn())) this.#again = true
      }
    } catch (error) {
      this.#logFailure(error)
    }
    await this.#sleep()
  }

  async #sleep(): Promise<void> {
    if (this.#abort.signal.aborted) return
    const next = await nextJobAt(this.#parts.seams.metadata).catch(() => undefined)
    const wait = next === undefined ? POLL_MS : next - this.#parts.clock.now()
    this.#timer = setTimeout(() => this.wake(), Math.min(Math.max(wait, 10), POLL_MS)).unref()
  }

  /** One batch of due jobs of one model. False when none was due. */
  async #turn(): Promise<boolean> {
    const { seams, clock } = this.#parts
    const now = clock.now()
    if (((await nextJobAt(seams.metadata)) ?? Infinity) > now) return false
    const jobs = await seams.metadata.transaction((tx) => leaseJobs(tx, now, now + LEASE_MS, BATCH))
    if (jobs.length === 0) return false
    const rows = await findCellsByNo(
      seams.metadata,
      jobs.map((job) => job.cell_no),
    )
    const cells = await seams.bodies.texts([...rows.values()], 'skip')
    const texts = new Map(cells.map((cell) => [cell.cell_no, cell.text]))
    const gone = jobs.filter((job) => !rows.has(job.cell_no)).map((job) => job.cell_no)
    if (gone.length > 0) await seams.metadata.transaction((tx) => deleteJobs(tx, gone))
    const waiting = jobs.flatMap((job) => {
      const text = texts.get(job.cell_no)
      return text === undefined ? [] : [{ job, text }]
    })
    const lost = jobs.filter((job) => rows.has(job.cell_no) && !texts.has(job.cell_no))
    if (lost.length > 0) await this.#fail(lost, 'the text of the Cell is lost in the content store')
    if (waiting.length === 0) return true
    const endRenewal = this.#renewLeases(jobs)
    await rootSpan('embed_queue.jobs', { 'mem.embed_queue.jobs': waiting.length }, () => this.#embed(waiting)).finally(
      endRenewal,
    )
    return true
  }

  /** Keeps the jobs from other processes, however long a provider takes; the answer ends that. */
  #renewLeases(jobs: readonly EmbedJob[]): () => void {
    const { seams, clock } = this.#parts
    const cellNos = jobs.map((job) => job.cell_no)
    let until = jobs[0]?.next_at ?? 0
    const renew = async (): Promise<void> => {
      const next = clock.now() + LEASE_MS
      await seams.metadata.transaction((tx) => extendLeases(tx, cellNos, until, next))
      until = next
    }
    const timer = setInterval(() => void renew().catch(this.#logFailure), LEASE_MS / 3)
    return () => clearInterval(timer)
  }

  async #embed(waiting: readonly { job: EmbedJob; text: string }[]): Promise<void> {
    const { embedding } = this.#parts
    let rest = [...waiting]
    try {
      const embedder = embedding.embedder(waiting[0]?.job.model ?? '')
      const texts = waiting.map(({ text }) => text)
      for await (const batch of embedding.batches(embedder, texts, this.#abort.signal)) {
        const vectors = new Map(batch)
        const done = rest.filter(({ text }) => vectors.has(text))
        rest = rest.filter(({ text }) => !vectors.has(text))
        await this.#completeJobs(embedder.model, done, vectors)
      }
    } catch (error) {
      const jobs = rest.map(({ job }) => job)
      await (this.#abort.signal.aborted ? this.#release(jobs) : this.#fail(jobs, errorText(error)))
    }
  }

  async #completeJobs(
    model: string,
    done: readonly { job: EmbedJob; text: string }[],
    vectors: ReadonlyMap<string, Float32Array>,
  ): Promise<void> {
    for (const [workspaceId, jobs] of byWorkspace(done.map(({ job }) => job))) {
      const texts = new Map(done.map(({ job, text }) => [job.cell_no, text]))
      const cellVectors = jobs.flatMap(({ cell_no: cellNo }) => {
        const vector = vectors.get(texts.get(cellNo) ?? '')
        return vector ? [{ cellNo, vector }] : []
      })
      await this.#completeDue(workspaceId, model, cellVectors)
    }
  }

  /** `complete` of what is still to be done: a Cell whose job is gone got a vector of another model, or was removed. */
  #completeDue(workspaceId: string, model: string, vectors: readonly CellVector[]): Promise<void> {
    return this.complete(workspaceId, model, vectors, true)
  }

  /** Stores vectors of the model, flips `recall_ready` of Memories that lack none any more, and links those due for it. */
  async complete(workspaceId: string, model: string, vectors: readonly CellVector[], onlyDue = false): Promise<void> {
    const { seams, mutations, embedding } = this.#parts
    if (!seams.vectorShared) {
      await seams.vector.transaction((tx) => seams.vectors.insert(tx, workspaceId, model, vectors))
    }
    const ready = await mutations.run(this.#system(), workspaceId, (mutation) =>
      markVectors(mutation, seams, workspaceId, model, vectors, onlyDue),
    )
    for (const memoryId of ready) await this.#link(workspaceId, embedding.embedder(model), memoryId)
  }

  /** Auto-link of a Memory that the queue made ready. */
  async #link(workspaceId: string, embedder: Embedder, memoryId: string): Promise<void> {
    const { seams, mutations, autoLink } = this.#parts
    const memory = await findMemory(seams.metadata, workspaceId, memoryId)
    const workspace = await findWorkspace(seams.metadata, workspaceId)
    if (memory?.auto_link_due !== 1 || !workspace || !autoLink.applies(workspace)) return
    const cells = await findCells(seams.metadata, memoryId)
    const vectors = await seams.vectors.find(
      seams.vector,
      embedder.model,
      cells.map((cell) => cell.cell_no),
    )
    const search = await autoLink.search(
      workspace,
      embedder,
      cells.map((cell) => ({ seq: cell.seq, vector: vectors.get(cell.cell_no) })),
      memoryId,
    )
    await mutations.run(this.#system(), workspaceId, async (mutation) => {
      if (!(await takeAutoLink(mutation.tx, memoryId))) return
      const links = await autoLink.admit(mutation, workspace, memoryId, search)
      await autoLink.write(mutation, workspaceId, memoryId, search, links)
    })
  }

  /** The next process need not wait for the leases of one that ended in order. */
  async #release(jobs: readonly EmbedJob[]): Promise<void> {
    const { seams, clock } = this.#parts
    await seams.metadata.transaction((tx) =>
      rescheduleJobs(
        tx,
        jobs.map((job) => ({ ...job, next_at: clock.now() })),
      ),
    )
  }

  async #fail(jobs: readonly EmbedJob[], reason: string): Promise<void> {
    const { seams, clock, log, mutations } = this.#parts
    log.warn({ cells: jobs.length, reason }, 'embedding failed and is tried again')
    const now = clock.now()
    const failed = jobs.map((job) => ({
      ...job,
      attempts: job.attempts + 1,
      next_at: now + delayAfter(job.attempts + 1),
    }))
    await seams.metadata.transaction((tx) => rescheduleJobs(tx, failed))
    const told = failed.filter((job) => job.attempts === FAILURES_TOLD)
    for (const [workspaceId, group] of byWorkspace(told)) {
      await mutations.run(this.#system(), workspaceId, async (mutation) => {
        const cells = await findCellsByNo(
          mutation.tx,
          group.map((job) => job.cell_no),
        )
        for (const job of group) {
          const cell = cells.get(job.cell_no)
          if (!cell) continue
          mutation.record('embed_failed', {
            target: job.memory_id,
            metadata: { cell_id: cell.cell_id, error: reason, attempts: job.attempts },
          })
        }
      })
    }
  }

  #system(): Caller {
    return {
      requestId: this.#parts.ids('req_'),
      startedAt: performance.now(),
      agentId: SYSTEM_AGENT,
      signal: this.#abort.signal,
    }
  }
}

/** Marks what has a vector now, and gives the Memories that lack none any more. */
async function markVectors(
  mutation: Mutation,
  seams: Seams,
  workspaceId: string,
  model: string,
  vectors: readonly CellVector[],
  onlyDue: boolean,
): Promise<string[]> {
  const { tx } = mutation
  const asked = vectors.map(({ cellNo }) => cellNo)
  const marked = new Map((await markEmbedded(tx, asked, model, onlyDue)).map((cell) => [cell.cell_no, cell.memory_id]))
  const isMarked = ({ cellNo }: CellVector): boolean => marked.has(cellNo)
  if (seams.vectorShared) await seams.vectors.insert(tx, workspaceId, model, vectors.filter(isMarked))
  else await seams.deleteVectors(tx, await findUnmarked(tx, asked, model), model)
  await deleteJobs(tx, [...marked.keys()])
  const ready: string[] = []
  for (const memoryId of new Set(marked.values())) {
    const isReady = (await countUnembedded(tx, memoryId, model)) === 0
    await setEmbedded(tx, memoryId, isReady ? model : null, mutation.changeSeq())
    if (isReady) ready.push(memoryId)
  }
  return ready
}

function byWorkspace(jobs: readonly EmbedJob[]): Map<string, EmbedJob[]> {
  const groups = new Map<string, EmbedJob[]>()
  for (const job of jobs) groups.set(job.workspace_id, [...(groups.get(job.workspace_id) ?? []), job])
  return groups
}
