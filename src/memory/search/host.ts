import type { SearchIndex } from '../ports.ts'
import type { LocalSearch } from './local.ts'
import type { RemoteSearch } from './remote.ts'
import type { CellSource, IndexSizes, SearchAnswer, SearchQuery } from './types.ts'

/**
 * Measured by bench/search-host.ts: in this thread a search holds up everything else for 4 ms at 5,000 Cells, 8 at 50,000 and
 * 12 at 100,000, and filling takes 80 µs a Cell. The worker takes 17 MB and 29 ms once, and 0.07 ms more a search.
 */
const INLINE_CELLS = 5_000

/**
 * Searches small workspaces in this thread and large ones in a worker, so that neither filling nor scanning them holds up
 * other requests. A workspace that outgrows the limit moves, and is filled anew there.
 */
export class SearchHost implements SearchIndex {
  readonly #source: CellSource
  readonly #local: LocalSearch
  readonly #remote: RemoteSearch
  readonly #inlineCells: number
  readonly #large = new Set<string>()

  constructor(source: CellSource, local: LocalSearch, remote: RemoteSearch, inlineCells = INLINE_CELLS) {
    this.#source = source
    this.#local = local
    this.#remote = remote
    this.#inlineCells = inlineCells
  }

  /**
   * Filling an index goes on after the signal has ended the search that waits for it.
   * @throws the reason of the signal: an error named TimeoutError or AbortError
   */
  search(workspaceId: string, model: string, query: SearchQuery, signal: AbortSignal): Promise<SearchAnswer> {
    return orAborted(this.#search(workspaceId, model, query, signal), signal)
  }

  /** Of the indexes in this thread, and of those in the worker. */
  sizes(): Record<'main' | 'worker', IndexSizes> {
    return { main: this.#local.sizes(), worker: this.#remote.sizes() }
  }

  forget(workspaceId: string): void {
    this.#large.delete(workspaceId)
    this.#local.forget(workspaceId)
    this.#remote.forget(workspaceId)
  }

  async close(): Promise<void> {
    await Promise.all([this.#local.close(), this.#remote.close()])
  }

  async #search(workspaceId: string, model: string, query: SearchQuery, signal: AbortSignal): Promise<SearchAnswer> {
    const place = (await this.#isLarge(workspaceId)) ? this.#remote : this.#local
    signal.throwIfAborted()
    return place.search(workspaceId, model, query, signal)
  }

  async #isLarge(workspaceId: string): Promise<boolean> {
    if (this.#large.has(workspaceId)) return true
    const cells = this.#local.size(workspaceId) ?? (await this.#source.count(workspaceId))
    if (cells <= this.#inlineCells) return false
    this.#large.add(workspaceId)
    this.#local.forget(workspaceId)
    return true
  }
}

/** What `promise` gives, or the reason of the signal as soon as it is aborted. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort)
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
