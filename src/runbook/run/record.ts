import type { Frame, NodeState, NodeStatus } from './state.ts'
import { UNKNOWN } from './state.ts'
import type { Value } from '../hcl/values.ts'
import type { NodeFailure } from '../errors.ts'

/** A settled node as the journal keeps it. */
export interface NodeRecord {
  /** `id`, in a loop body `loop[3]/id`. */
  readonly path: string
  readonly id: string
  readonly status: NodeStatus
  readonly output: Value
  readonly branch?: string
  readonly error?: NodeFailure
  readonly tolerated?: boolean
  readonly continued?: boolean
  /** Something secret without a name is masked in it. */
  readonly redacted?: boolean
  /** Taken over from a report that does not show the output. */
  readonly withheld?: boolean
  readonly attempts: NodeState['attempts']
  readonly durationMs: number
}

export const nodePath = (frame: Frame, id: string): string => `${frame.path}${id}`

/** The state of a node as journal and report keep it; what a dry run does not know is null. */
export function toRecord(frame: Frame, id: string, state: NodeState): NodeRecord {
  const { status, output, branch, error, tolerated, continued, attempts, durationMs } = state
  return {
    path: nodePath(frame, id),
    id,
    status,
    output: output === UNKNOWN ? null : output,
    ...(branch !== undefined && { branch }),
    ...(error && { error }),
    ...(tolerated && { tolerated }),
    ...(continued && { continued }),
    attempts,
    durationMs,
  }
}

/** A finished node's state in a resumed run; undefined for one that has to run again. */
export function fromRecord(record: NodeRecord | undefined): NodeState | undefined {
  if (!record || record.redacted || !isFinished(record)) return undefined
  const { path: _path, id: _id, ...state } = record
  return { ...state, reused: true }
}

export const isFinished = ({ status, tolerated }: NodeRecord): boolean =>
  status === 'succeeded' || status === 'skipped' || (status === 'failed' && tolerated === true)
