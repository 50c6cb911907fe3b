/** All wire shapes of the kernel. */
export type * from './plan-types.ts'
export type * from './registry-types.ts'
export type * from './run-types.ts'
export type * from './skill-types.ts'
export type * from './types.ts'
export type { CallOptions, WriteOptions } from './wire.ts'
export type * from './work-types.ts'
