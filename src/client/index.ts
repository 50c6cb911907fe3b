/** `mem/client`: clients of the memory service and of the kernel, without the rest of the library. */
export { MemoryApiError, MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from './errors.ts'
export type * from './graph-types.ts'
export { KernelApiError } from './kernel/errors.ts'
export type * as kernel from './kernel/kernel-types.ts'
export { KernelClient, type KernelClientOptions } from './kernel-client.ts'
export { MemoryClient, type MemoryClientOptions, type WriteOptions } from './memory-client.ts'
export type * from './types.ts'
