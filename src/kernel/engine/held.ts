import { BY_KERNEL, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import { KernelError } from '../errors.ts'
import type { Shown } from '../model/outcome.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { makeShared } from '../shared-changes.ts'
import { findRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import { hasNewer } from './envelope.ts'
import type { TurnParts } from './parts.ts'

/** Why the answer of a model is not wanted any more. */
export type Discard =
  'run_paused' | 'run_canceled' | 'newer_guidance' | 'lease_lost' | 'duration_budget' | 'engine_stopped'

/** A run that a worker has, as it last saw it. */
export class Held {
  run: Run
  readonly fencingToken: number
  /** Epoch ms. */
  renewedAt: number
  #discard: Discard | undefined
  #call: AbortController | undefined
  #shown: Shown | undefined

  constructor(run: Run, fencingToken: number, now: number) {
    this.run = run
    this.fencingToken = fencingToken
    this.renewedAt = now
  }

  get discard(): Discard | undefined {
    return this.#discard
  }

  /** The first reason counts. */
  abort(reason: Discard): void {
    this.#discard ??= reason
    this.#call?.abort()
  }

  /** A model call begins: it ends early when nobody wants the answer any more. */
  beginCall(shown: Shown): AbortController {
    this.#shown = shown
    this.#call = new AbortController()
    if (this.#discard) this.#call.abort()
    return this.#call
  }

  endCall(): void {
    this.#call = undefined
    this.#shown = undefined
  }

  /** Takes notice of what became of the run meanwhile. */
  notice(run: Run): void {
    const reason = this.#reasonOf(run)
    if (reason) this.abort(reason)
    else this.run = run
  }

  #reasonOf(run: Run): Discard | undefined {
    if (run.status === 'paused') return 'run_paused'
    if (isTerminal(run.status)) return 'run_canceled'
    if (run.status !== 'running' || run.fencingToken !== this.fencingToken) return 'lease_lost'
    return this.#shown && hasNewer(run, this.#shown) ? 'newer_guidance' : undefined
  }
}

const ATTEMPTS = 5

/**
 * Makes a change to a run that is held, as it was last seen: its revision tells whether another wrote meanwhile, and no row is
 * read for it. Where one did, the change is made to what the run is now; undefined when it is not held any more.
 */
export async function changeHeld<T>(
  { context }: Pick<TurnParts, 'context'>,
  held: Held,
  fn: (change: Change, run: Run) => Promise<T>,
): Promise<T | undefined> {
  for (let attempt = 1; ; attempt++) {
    const { run } = held
    try {
      const { result } = await makeShared(context, run.scope, BY_KERNEL, (change) => fn(change, run))
      return result
    } catch (error) {
      if (!(error instanceof KernelError) || error.code !== 'conflict' || attempt === ATTEMPTS) throw error
      const current = await findRecord(context.store.database, runs, run.scope, run.id)
      if (!current || current.revision === run.revision) throw error
      held.notice(current)
      if (held.discard) return undefined
    }
  }
}

/** Why the work of a holder was not taken. */
export async function learnDiscard({ store }: KernelContext, held: Held): Promise<Discard> {
  const { scope, id } = held.run
  const current = held.discard ? undefined : await findRecord(store.database, runs, scope, id)
  if (current) held.notice(current)
  return held.discard ?? 'lease_lost'
}
