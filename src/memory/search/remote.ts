import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { packageRoot } from '../../base/package-root.ts'
import type { SearchIndex } from '../ports.ts'
import type { SearchAnswer, SearchQuery } from './types.ts'

/** How a worker opens a source of its own: a module that exports `openCellSource`, and what to call it with. */
export interface SourceAddress {
  /** File URL. */
  sourceModule: string
  /** Plain data. */
  sourceOptions: unknown
}

export interface WorkerStart extends SourceAddress {
  maxCells: number
}

export type ToWorker =
  | { kind: 'search'; id: number; workspaceId: string; model: string; query: SearchQuery }
  | { kind: 'cancel'; id: number }
  | { kind: 'forget'; workspaceId: string }

export type FromWorker = { id: number; answer: SearchAnswer } | { id: number; error: unknown }

interface Pending {
  resolve(answer: SearchAnswer): void
  reject(reason: unknown): void
}

/** The worker is what the build made, also where the rest runs from source: Node 20 runs no TypeScript. */
const WORKER_FILE = join(packageRoot, 'dist/search-worker.js')

/** `LocalSearch` in a worker thread, which begins with the first search and does not keep the process alive. */
export class RemoteSearch implements SearchIndex {
  readonly #start: WorkerStart
  readonly #file: string
  readonly #pending = new Map<number, Pending>()
  #worker: Worker | undefined
  #lastId = 0

  constructor(start: WorkerStart, file = WORKER_FILE) {
    this.#start = start
    this.#file = file
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
    const worker = new Worker(this.#file, { workerData: this.#start })
    worker.on('message', (message: FromWorker) => this.#settle(message))
    worker.on('error', (error) => this.#fail(error))
    worker.on('exit', () => {
      this.#worker = undefined
      this.#fail(new Error('the search thread ended'))
    })
    return worker
  }

  #settle(message: FromWorker): void {
    const pending = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    if (this.#pending.size === 0) this.#worker?.unref()
    if ('error' in message) pending?.reject(message.error)
    else pending?.resolve(message.answer)
  }

  #fail(reason: Error): void {
    for (const pending of this.#pending.values()) pending.reject(reason)
    this.#pending.clear()
  }
}
