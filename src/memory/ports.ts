import type { SearchAnswer, SearchQuery } from './search/types.ts'

/** What this service needs of others. */

export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Search over the Cells of a workspace that have vectors of a model, up to date with every commit before the call. */
export interface SearchIndex {
  /** @throws an error named TimeoutError or AbortError when the signal ends it. */
  search(workspaceId: string, model: string, query: SearchQuery, signal: AbortSignal): Promise<SearchAnswer>
}
