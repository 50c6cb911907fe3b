import { setTimeout } from 'node:timers/promises'
import { backOff } from '../../base/back-off.ts'
import { errorText } from '../../base/errors.ts'
import { DEPTH_MAX, isTooDeep } from '../../base/json-depth.ts'
import type { Outcome, RetryPolicy } from '../call-states.ts'
import type { ActionParts, KernelContext } from '../context.ts'
import { isHarmless, type ActionCall } from '../model/action.ts'
import type { SkillAction } from '../model/skill.ts'
import { findDenial } from '../policy.ts'
import type { Dispatch, DispatchOutcome, TransportExecutor } from '../ports.ts'
import { resolveDeployment } from '../registry/resolve.ts'
import { isTerminal } from '../run-states.ts'
import { markDispatched } from '../store/call-leases.ts'
import { agentDeployments } from '../store/deployments.ts'
import { findRecord, readRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import type { ClaimedCall } from './claim-call.ts'
import { conceal, concealJson } from './conceal.ts'
import { finishCall, type Attempt } from './finish.ts'
import { asJudged } from './propose.ts'
import { resolveAction, type ResolvedAction } from './resolve.ts'
import { schemaMismatch } from './schema.ts'

/** One attempt of a call, from the claim to its outcome. Contract: kernel-1.md 9, 14.1, 14.4 (T7) */

export interface Interruptions {
  /** The lease is lost, or the worker stops: what was sent is left as it is. */
  abandoned: AbortSignal
  /** The run was canceled. */
  canceled: AbortSignal
}

/** Of a call whose skill is gone. */
export const DEFAULT_RETRY: RetryPolicy = { initialBackoffMs: 1000, maxBackoffMs: 60_000 }

/**
 * Resolves and judges a claimed call anew, sends it, and records what became of it: that is given, or undefined where the
 * outcome is left to whoever recovers the call.
 */
export async function performCall(
  context: KernelContext,
  { call, fencingToken }: ClaimedCall,
  { abandoned, canceled }: Interruptions,
): Promise<ActionCall | undefined> {
  const { scope, id: callId } = call
  const { store } = context
  const finish = (outcome: Outcome, retry: RetryPolicy = DEFAULT_RETRY) =>
    finishSurely(context, { scope, callId, fencingToken, outcome, retry }, abandoned)
  const prepared = await prepare(context, call)
  if ('kind' in prepared) return finish(prepared, prepared.retry)
  if (abandoned.aborted) return finish({ kind: 'not_sent' })
  if (canceled.aborted) return finish(unprepared('the run was canceled before it was sent'))
  const { action, secrets } = prepared
  if (!(await markDispatched(store.database, scope, callId, { fencingToken, now: store.now() }))) return undefined
  const outcome = await send(prepared, call, { abandoned, canceled })
  return abandoned.aborted ? undefined : finish(withoutSecrets(checkOutput(outcome, action), secrets), action.retry)
}

/** In all some 45 s: a database that is started again is back by then. */
const FINISHES = 20
const FIRST_PAUSE_MS = 200
const MOST_PAUSE_MS = 5000

/** What became of a call is known here alone: a database that fails for a moment must not make it unknown. */
async function finishSurely(
  context: KernelContext,
  attempt: Attempt,
  abandoned: AbortSignal,
): Promise<ActionCall | undefined> {
  for (let failures = 1; ; failures++) {
    try {
      return await finishCall(context, attempt)
    } catch (error) {
      if (failures === FINISHES || abandoned.aborted) throw error
      context.log.warn({ err: error, call: attempt.callId }, `outcome of a call not written: ${errorText(error)}`)
      await setTimeout(backOff(failures, FIRST_PAUSE_MS, MOST_PAUSE_MS), undefined, { signal: abandoned })
    }
  }
}

interface Prepared extends ResolvedAction {
  executor: TransportExecutor
  credentials: Dispatch['credentials']
  secrets: string[]
}

type Unprepared = Extract<Outcome, { kind: 'failed' | 'not_sent' }> & { retry?: RetryPolicy }

const unprepared = (error: string, retry?: RetryPolicy): Unprepared => ({
  kind: 'failed',
  error,
  phase: 'prepare',
  retryable: retry !== undefined,
  ...(retry && { retry }),
})

/** Everything that an attempt needs, or why there is none. Nothing was sent yet. */
async function prepare(context: KernelContext, call: ActionCall): Promise<Prepared | Unprepared> {
  const { actions, store } = context
  if (!actions) return unprepared('no skills are configured')
  const run = await readRecord(store.database, runs, call.scope, call.runId)
  if (isTerminal(run.status)) return unprepared(`the run is ${run.status}`)
  const agent = await resolveDeployment(store.database, call.scope, run)
  if (!agent) {
    const deployment = await findRecord(store.database, agentDeployments, call.scope, call.deploymentId)
    // It was paused since the claim: the call waits until it is active again.
    if (deployment?.rolloutStatus === 'paused') return { kind: 'not_sent' }
    return unprepared(`agent deployment ${call.deploymentId} is not active`)
  }
  const resolved = await resolveAction(store.database, actions, run, agent, call)
  if (typeof resolved === 'string') return unprepared(resolved)
  const { binding, bounds, transport } = resolved
  if (binding.skillId !== call.skillId || binding.skillVersion !== call.skillVersion) {
    return unprepared(`skill binding ${binding.id} has another skill by now`)
  }
  const { validators } = actions
  const denial = await findDenial(asJudged(run, agent, call), { bounds, validators, log: context.log })
  if (denial !== undefined) return unprepared(denial)
  const executor = actions.transports[transport.kind]
  if (!executor) return unprepared(`nothing here carries out actions by ${transport.kind}`)
  const credentials = await readCredentials(context, actions, call, resolved.action)
  if (typeof credentials === 'string') return unprepared(credentials, resolved.action.retry)
  return {
    ...resolved,
    executor,
    credentials,
    secrets: Object.values(credentials).map(({ value }) => value),
  }
}

/** The values of what an action asks for, or which is not to be had. They are read now and kept nowhere. */
async function readCredentials(
  { log }: KernelContext,
  { credentials: resolver }: ActionParts,
  { scope, credentialRefs, id }: ActionCall,
  action: SkillAction,
): Promise<Dispatch['credentials'] | string> {
  const found: Record<string, { kind: string; value: string }> = {}
  for (const { name, kind, optional } of action.credentials) {
    const reference = credentialRefs[name]
    if (!reference) {
      if (optional) continue
      return `credential ${name} is not bound`
    }
    try {
      found[name] = { kind, value: await resolver.resolve(scope, reference) }
    } catch (error) {
      log.warn({ err: error, call: id, credential: name }, 'credential not readable')
      return `credential ${name} could not be read: the log of the server says why`
    }
  }
  return found
}

async function send(
  { executor, action, transport, credentials }: Prepared,
  call: ActionCall,
  { abandoned, canceled }: Interruptions,
): Promise<DispatchOutcome> {
  const timeout = AbortSignal.timeout(action.timeoutMs)
  const signal = AbortSignal.any([timeout, abandoned, ...(isHarmless(action.sideEffect) ? [canceled] : [])])
  const gaveUp = new Promise<DispatchOutcome>((resolve) => {
    const giveUp = (): void => resolve({ kind: 'unknown', error: whyAborted(timeout, action.timeoutMs) })
    signal.addEventListener('abort', giveUp, { once: true })
  })
  const request: Dispatch = {
    invocationId: call.id,
    scope: call.scope,
    runId: call.runId,
    deploymentId: call.deploymentId,
    skillId: call.skillId,
    skillVersion: call.skillVersion,
    action: call.action,
    arguments: call.arguments,
    attempt: call.attempt,
    idempotencyKey: call.idempotencyKey,
    transport,
    credentials,
    signal,
    canceled,
  }
  const sent = executor.execute(request).catch((error: unknown): DispatchOutcome => ({
    kind: 'unknown',
    error: signal.aborted ? whyAborted(timeout, action.timeoutMs) : errorText(error),
  }))
  return Promise.race([sent, gaveUp])
}

const whyAborted = (timeout: AbortSignal, timeoutMs: number): string =>
  timeout.aborted ? `no answer within ${timeoutMs} ms` : 'given up before the answer'

const withoutSecrets = (outcome: DispatchOutcome, secrets: readonly string[]): DispatchOutcome =>
  outcome.kind === 'succeeded'
    ? { ...outcome, output: concealJson(outcome.output, secrets) }
    : { ...outcome, error: conceal(outcome.error, secrets) }

/** What does not fit its schema, or cannot be kept, is a failure, though it was done. */
function checkOutput(outcome: DispatchOutcome, { outputSchema }: SkillAction): DispatchOutcome {
  if (outcome.kind !== 'succeeded') return outcome
  const mismatch = isTooDeep(outcome.output)
    ? `it is nested deeper than ${DEPTH_MAX} levels`
    : outputSchema && schemaMismatch(outputSchema, outcome.output)
  return mismatch === undefined
    ? outcome
    : { kind: 'failed', error: `the output does not fit: ${mismatch}`, phase: 'validate_output', retryable: false }
}
