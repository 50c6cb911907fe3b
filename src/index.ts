/** The library: the only supported import of this package. */
export { MemoryApiError, MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from './client/errors.ts'
export type * from './client/graph-types.ts'
export { MemoryClient, type MemoryClientOptions, type WriteOptions } from './client/memory-client.ts'
export type * from './client/types.ts'
