import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { fromJson } from '../hcl/json.ts'
import { isMap } from '../hcl/values.ts'
import { NodeError, nodeError, type NodeFailure } from '../errors.ts'
import type { NodeResult } from '../registry.ts'
import type { Masking } from './masking.ts'
import { backoff, isRetried, type RetryPolicy } from './retry.ts'
import { timestamp, type Attempt } from './state.ts'

/** A cancelled node gets this long to end. Contract: runbook.md 4.8. */
const GRACE_MS = 5000

/** Longer timers of the host fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1

/** The last attempt failed; the attempts made are in `attempts`. */
export class AttemptsFailed extends Error {
  readonly failure: NodeError
  readonly attempts: readonly Attempt[]

  constructor(failure: NodeError, attempts: readonly Attempt[]) {
    super(failure.message)
    this.failure = failure
    this.attempts = attempts
  }
}

interface AttemptOptions {
  readonly policy: RetryPolicy
  readonly timeoutMs: number | undefined
  /** Cancels the node. */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly masking: Masking
  /** Makes jitter repeatable. */
  readonly seed: string
  onRetry(attempt: number, delayMs: number, error: NodeError): void
}

/** Runs attempts until one succeeds or the policy ends. @throws AttemptsFailed */
export async function attempt(
  execute: (attempt: number, signal: AbortSignal) => Promise<NodeResult>,
  options: AttemptOptions,
): Promise<{ result: NodeResult; attempts: readonly Attempt[] }> {
  const { policy, clock, signal } = options
  const attempts: Attempt[] = []
  for (let number = 1; ; number++) {
    const started = clock.now()
    const record = (error?: NodeError): Attempt => ({
      startedAt: timestamp(started),
      durationMs: clock.now() - started,
      ...(error && { error: failureFields(error, options.masking) }),
    })
    try {
      const result = await limited((inner) => execute(number, inner), options)
      attempts.push(record())
      return { result, attempts }
    } catch (thrown) {
      const error = signal.aborted ? new NodeError('cancelled', 'the node was cancelled') : nodeError(thrown)
      attempts.push(record(error))
      if (signal.aborted || number >= policy.attempts || !isRetried(policy, error))
        throw new AttemptsFailed(error, attempts)
      const delay = backoff(policy, number, error.retryAfterMs, options.seed)
      options.onRetry(number, delay, error)
      await pause(delay, signal, error, attempts)
    }
  }
}

async function pause(ms: number, signal: AbortSignal, error: NodeError, attempts: readonly Attempt[]): Promise<void> {
  try {
    await wait(Math.min(ms, LONGEST_TIMER), undefined, { signal })
  } catch {
    throw new AttemptsFailed(new NodeError('cancelled', `cancelled while waiting to retry: ${error.message}`), attempts)
  }
}

/** One attempt under its time limit; a cancelled one may take five seconds to end. */
async function limited(
  execute: (signal: AbortSignal) => Promise<NodeResult>,
  { timeoutMs, signal }: AttemptOptions,
): Promise<NodeResult> {
  // most nodes have no limit of their own and share the signal that cancels them
  const controller = timeoutMs === undefined ? undefined : new AbortController()
  let timer: NodeJS.Timeout | undefined
  let cancel: (() => void) | undefined
  const stopped = new Promise<never>((_, reject) => {
    const end = (error: NodeError, after: number): void => {
      controller?.abort(error)
      clearTimeout(timer)
      timer = setTimeout(() => reject(error), after)
    }
    cancel = () => end(new NodeError('cancelled', 'the node was cancelled'), GRACE_MS)
    if (timeoutMs !== undefined) {
      timer = setTimeout(
        () => end(new NodeError('timeout', `no answer within ${timeoutMs} ms`), 0),
        Math.min(timeoutMs, LONGEST_TIMER),
      )
    }
    if (signal.aborted) cancel()
    else signal.addEventListener('abort', cancel)
  })
  try {
    return await Promise.race([execute(controller?.signal ?? signal), stopped])
  } catch (error) {
    const reason: unknown = controller?.signal.reason
    throw reason instanceof NodeError ? reason : error
  } finally {
    clearTimeout(timer)
    if (cancel) signal.removeEventListener('abort', cancel)
  }
}

/** An error as reports show it. */
export function failureFields(error: NodeError, masking: Masking): Omit<NodeFailure, 'node' | 'attempts'> {
  const details = masking.value(fromJson(error.details))
  return {
    code: error.code,
    class: error.class,
    message: masking.text(error.message),
    ...(error.range && { range: error.range }),
    ...(isMap(details) && Object.keys(details).length > 0 && { details }),
  }
}
