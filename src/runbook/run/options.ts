import type { Value } from '../hcl/values.ts'
import type { GuardOptions } from '../outbound/guard.ts'
import type { NodeRegistry, NodeServices } from '../registry.ts'
import type { NodeRecord } from './record.ts'

export interface RunEvent {
  readonly event: 'run.started' | 'node.started' | 'node.log' | 'node.retry' | 'node.finished' | 'run.finished'
  readonly time: string
  readonly runId: string
  /** Path of the node, `loop[3]/id` in a loop body. */
  readonly node?: string
  readonly [detail: string]: unknown
}

/** What a journal begins with. */
export interface JournalHeader {
  readonly runId: string
  readonly attempt: number
  readonly workflow: string
  readonly file: string
  /** Start of the first attempt. */
  readonly startedAt: string
  /** Without sensitive ones. */
  readonly inputs: Readonly<Record<string, Value>>
  /** Names of the sensitive inputs that were given, and have to be given again. */
  readonly sensitive: readonly string[]
  readonly triggerData: Value
  readonly variables: Readonly<Record<string, Value>>
  /** By node id. */
  readonly digests: Readonly<Record<string, string>>
  readonly workflowDigest: string
  /** Paths of the nodes that a resumed run takes over. */
  readonly reused: readonly string[]
}

/** What must not be stored. */
export interface Concealment {
  /** Secrets and sensitive inputs by name. */
  readonly named: Readonly<Record<string, string>>
  /** Hides what has no name. */
  mask(value: Value): Value
}

/** Receives a run as it happens. Contract: runbook.md 9. */
export interface JournalSink {
  /** `taken` is what a resumed run takes over, for a journal that doesn't hold it yet. */
  begin(header: JournalHeader, concealment: Concealment, taken: readonly NodeRecord[]): void
  /** A node with external effects starts. */
  started(path: string): void
  node(record: NodeRecord): void
  end(status: string): void
  /** Shown as `journal` of the report; undefined until something is written. */
  readonly path: string | undefined
}

/** What was finished before, by path. Contract: runbook.md 9. */
export interface ResumeState {
  readonly runId: string
  /** Of the run that goes on. */
  readonly attempt: number
  readonly startedAt: string
  readonly nodes: ReadonlyMap<string, NodeRecord>
  /** Shown as `run.resumedFrom`. */
  readonly from: string
}

export interface RunOptions {
  readonly registry: NodeRegistry
  readonly inputs?: Readonly<Record<string, Value>>
  readonly vars?: Readonly<Record<string, Value>>
  /** The trigger that fires; all of them when absent. */
  readonly trigger?: string
  /** JSON data. */
  readonly triggerData?: unknown
  readonly secrets?: Readonly<Record<string, string>>
  /** Allowed environment names; undefined for one that is not set. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly concurrency?: number
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  readonly runId?: string
  /** Start of the run for `timestamp()`, in milliseconds. */
  readonly now?: number
  readonly dryRun?: boolean
  /** Missing paths are errors. */
  readonly strict?: boolean
  /** Outputs of nodes that are not executed, by id. */
  readonly mocks?: Readonly<Record<string, unknown>>
  readonly until?: string
  readonly only?: string
  readonly resume?: ResumeState
  readonly onEvent?: (event: RunEvent) => void
  /** Events in order of time, not of the plan. */
  readonly unordered?: boolean
  readonly journal?: JournalSink
  /** What nodes may connect to, and below which directories beside the workflow's they may read files. */
  readonly guard?: GuardOptions & { readonly allowPaths?: readonly string[] }
  readonly services?: NodeServices
  /** Answers the question of `manual` with `confirmation`; the signal tells that no answer is needed any more. */
  readonly confirm?: (nodeId: string, signal: AbortSignal) => Promise<boolean>
}
