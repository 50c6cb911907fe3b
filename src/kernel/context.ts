import type { Logger } from 'pino'
import type { Change } from './change.ts'
import type { Scope } from './model/fields.ts'
import type { Run } from './model/run.ts'
import type { KernelStore } from './store/store.ts'

/** What every rule of the kernel works with. */
export interface KernelContext {
  readonly store: KernelStore
  /** Ids of records and events: UUIDs in order of time. */
  newId(): string
  readonly log: Logger
  /** What else happens, in the same transaction, when a run came to its end. */
  readonly endings: readonly ((change: Change, run: Run) => Promise<void>)[]
  /** Something of this scope may be due: for latency only, it may be lost. */
  hint(scope: Scope): void
}
