/** `mem/client`: a client of the memory service, without the rest of the library. */
export { MemoryApiError, MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from './errors.ts'
export type * from './graph-types.ts'
export { MemoryClient, type MemoryClientOptions, type WriteOptions } from './memory-client.ts'
export type * from './types.ts'
