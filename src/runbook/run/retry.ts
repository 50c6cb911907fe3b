import { createHash } from 'node:crypto'
import { NodeError } from '../errors.ts'
import { parseDuration } from '../hcl/duration.ts'
import { evaluate } from '../hcl/evaluate.ts'
import type { Scope } from '../hcl/scope.ts'
import { itemsOf, toBool, toNumber, toText, type Value } from '../hcl/values.ts'
import type { WorkflowNode } from '../model.ts'

/** Contract: runbook.md 2.3, 4.8. */
export interface RetryPolicy {
  /** Including the first. */
  readonly attempts: number
  readonly backoffMs: number
  readonly maxBackoffMs: number
  readonly jitter: boolean
  /** Classes or codes of errors. */
  readonly on: readonly string[]
}

const ONE_ATTEMPT: RetryPolicy = { attempts: 1, backoffMs: 0, maxBackoffMs: 0, jitter: false, on: [] }
const RETRIED = ['network', 'timeout', 'rate_limited', 'server_error']

/** The policy of a node; without a `retry` block one attempt. @throws EvaluationError, NodeError */
export function retryPolicy({ retry, id }: WorkflowNode, scope: Scope): RetryPolicy {
  if (!retry) return ONE_ATTEMPT
  const value = <T>(name: string, read: (value: Value) => T | undefined, absent: T): T => {
    const attribute = retry.attributes.get(name)
    if (!attribute) return absent
    const result = read(evaluate(attribute.value, scope))
    if (result === undefined) throw new NodeError('config_invalid', `retry of "${id}": ${name} is not valid`)
    return result
  }
  return {
    attempts: value('attempts', attemptCount, 3),
    backoffMs: value('backoff', durationMs, 1000),
    maxBackoffMs: value('max_backoff', durationMs, value('maxBackoff', durationMs, 30_000)),
    jitter: value('jitter', toBool, false),
    on: value('on', texts, RETRIED),
  }
}

/** Milliseconds of a duration value. */
export const durationMs = (value: Value): number | undefined =>
  typeof value === 'string' || typeof value === 'number' ? parseDuration(value) : undefined

function attemptCount(value: Value): number | undefined {
  const count = toNumber(value)
  return count !== undefined && Number.isInteger(count) && count >= 1 && count <= 20 ? count : undefined
}

function texts(value: Value): string[] | undefined {
  const items = itemsOf(value)?.map(toText)
  return items?.every((item) => item !== undefined) ? items : undefined
}

export const isRetried = (policy: RetryPolicy, error: NodeError): boolean =>
  policy.on.includes(error.class) || policy.on.includes(error.code)

/** Milliseconds to wait behind attempt `attempt`; the jitter follows from `seed`, so that a run can be repeated. */
export function backoff(policy: RetryPolicy, attempt: number, retryAfterMs: number | undefined, seed: string): number {
  const exponential = Math.min(policy.backoffMs * 2 ** (attempt - 1), policy.maxBackoffMs)
  const scaled = policy.jitter ? exponential * (0.5 + fraction(`${seed}/${attempt}`) / 2) : exponential
  return Math.max(scaled, Math.min(retryAfterMs ?? 0, policy.maxBackoffMs))
}

/** A number in [0, 1) that follows from the text. */
const fraction = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE() / 2 ** 32
