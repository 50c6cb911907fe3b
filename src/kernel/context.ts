import type { Logger } from 'pino'
import type { Change } from './change.ts'
import type { Scope } from './model/fields.ts'
import type { Run } from './model/run.ts'
import type {
  ActionPolicy,
  ApprovalAuthorizer,
  CredentialResolver,
  ProposalValidator,
  SkillCatalog,
  TransportExecutor,
} from './ports.ts'
import type { KernelStore } from './store/store.ts'

/** What actions need; without it agents can only think. */
export interface ActionParts {
  readonly catalog: SkillCatalog
  readonly policy: ActionPolicy
  readonly validators: readonly ProposalValidator[]
  /** By the kind of transport: an action whose kind is not here is not offered. */
  readonly transports: Readonly<Record<string, TransportExecutor>>
  readonly credentials: CredentialResolver
}

/** What every rule of the kernel works with. */
export interface KernelContext {
  readonly store: KernelStore
  /** Ids of records and events: UUIDs in order of time. */
  readonly newId: () => string
  readonly log: Logger
  /** What else happens, in the same transaction, when a run came to its end on which anything hangs (`findBare`). */
  readonly endings: readonly ((change: Change, run: Run) => Promise<unknown>)[]
  /** Something of this scope may be due: for latency only, it may be lost. */
  hint(scope: Scope): void
  /** There is an agent registry: only agents that are installed work. */
  readonly agents?: boolean
  readonly actions?: ActionParts
  readonly approvalAuthorizer?: ApprovalAuthorizer
}
