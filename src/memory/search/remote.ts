import { Worker } from 'node:worker_threads'
import { builtModule } from '../../base/package-root.ts'
import type { SearchIndex } from '../ports.ts'
import type { IndexSizes, SearchAnswer, SearchQuery } from './types.ts'

/** How a worker opens a source of its own, and what it holds. */
export interface WorkerStart {
  /** File URL of a module that exports `openCellSource(options): CellSource`. */
  sourceModule: string
  /** Plain data. */
  sourceOptions: unknown
  /** As for `LocalSearch`. */
  maxCells: number
}

export type ToWorker =
  | { kind: 'search'; id: number; workspaceId: string; model: string; query: SearchQuery }
  | { kind: 'cancel'; id: number }
  | { kind: 'forget'; workspaceId: string }

export type FromWorker = { id: number; sizes: IndexSizes } & ({ answer: SearchAnswer } | { error: unknown })

interface Pending {
  resolve(answer: SearchAnswer): void
  reject(reason: unknown): void
}

const NONE: IndexSizes = { indexes: 0, cells: 0 }

/** `LocalSearch` in a worker thread, which begins with the first search and does not keep the process alive. */
export class RemoteSearch implements SearchIndex {
  readonly #start: WorkerStart
  readonly #module: string
  readonly #pending = new Map<number, Pending>()
  #worker: Worker | undefined
  #sizes: IndexSizes = NONE
  #lastId = 0

  constructor(start: WorkerStart, module = builtModule('search-worker').href) {
    this.#start = start
    this.#module = module
  }

  search(workspaceId: string, model: string, query: SearchQuery, signal: AbortSignal): Promise<SearchAnswer> {
    const worker = (this.#worker ??= this.#launch())
    const id = ++this.#lastId
    const cancel = (): void => this.#send({ kind: 'cancel', id })
    signal.addEventListener('abort', cancel)
    worker.ref()
    return new Promise<SearchAnswer>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#send({ kind: 'search', id, workspaceId, model, query })
    }).finally(() => signal.removeEventListener('abort', cancel))
  }

  /** Of the indexes in the worker, at its last answer. */
  sizes(): IndexSizes {
    return this.#sizes
  }

  forget(workspaceId: string): void {
    this.#send({ kind: 'forget', workspaceId })
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  #send(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  #launch(): Worker {
    const worker = new Worker(new URL(this.#module), { workerData: this.#start })
    worker.on('message', (message: FromWorker) => this.#settle(message))
    worker.on('error', (error) => this.#fail(error))
    worker.on('exit', () => {
      this.#worker = undefined
      this.#sizes = NONE
      this.#fail(new Error('the search thread ended'))
    })
    return worker
  }

  #settle(message: FromWorker): void {
    const pending = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    this.#sizes = message.sizes
    if (this.#pending.size === 0) this.#worker?.unref()
    if ('error' in message) pending?.reject(message.error)
    else pending?.resolve(message.answer)
  }

  #fail(reason: Error): void {
    for (const pending of this.#pending.values()) pending.reject(reason)
    this.#pending.clear()
  }
}
