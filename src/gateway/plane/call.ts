import { endBefore } from '../../http/deadline.ts'
import { GatewayError } from '../errors.ts'
import { UpstreamFault } from '../exchange/exchange.ts'
import type { Reservation } from '../metering/metering.ts'
import type { Candidate, Selection, Waiting } from '../routing/candidate.ts'
import { Attempt, type AttemptEnd, type AttemptOwner } from './attempt.ts'
import { backOffMs } from './back-off.ts'
import { factsOf } from './candidate-facts.ts'
import { Ending } from './ending.ts'
import { goneFault, internalError, lateFault } from './faults.ts'
import { forwardedOf, NONE } from './forwarded.ts'
import type { Inference } from './judge.ts'
import type { PlaneParts, RunResult } from './parts.ts'
import { isOfMoney, reserveFor } from './payment.ts'
import type { Family } from './refusal.ts'
import type { AnswerSink } from './sink.ts'
import type { Visit } from './visit.ts'
import type { Watch, Watched } from './watch.ts'

const OK = { class: 'ok' } as const

export interface CallOrder {
  readonly visit: Visit
  readonly request: Inference
  readonly selection: Selection
  readonly family: Family
  /** Estimated. */
  readonly inputTokens: number
  /** Milliseconds that the client gives the whole request. */
  readonly clientLimitMs: number
}

/**
 * One call: its attempts, one after the other, until one answers into the sink; and its usage record. Callbacks and not
 * promises lead from step to step, but where something is waited for: on the way of every request each promise is felt.
 * Contract: gateway.md 4.4-4.6, 6.
 */
export class Call implements Watched, Waiting, AttemptOwner {
  place = -1
  readonly #parts: PlaneParts
  readonly #watch: Watch
  readonly #order: CallOrder
  readonly #sink: AnswerSink
  readonly #ending: Ending
  #done: ((result: RunResult) => void) | undefined
  #failed: ((error: unknown) => void) | undefined
  #current: Attempt | undefined
  /** Of the attempt under way. */
  #reservation: Reservation | undefined
  #attemptedAt = 0
  #deadlineAt: number
  /** Why it must end before its time. */
  #stopped: UpstreamFault | undefined
  #waits: AbortController | undefined
  /** Why the first of those that were not called was not: no money could be set aside, or it cannot be told the request. */
  #uncalled: GatewayError | undefined
  /** Of attempts: why the first failed, and the last one. */
  #first: UpstreamFault | undefined
  #latest: UpstreamFault | undefined
  #backOffs = 0
  #hasWaited = false

  constructor(parts: PlaneParts, watch: Watch, order: CallOrder, sink: AnswerSink) {
    this.#parts = parts
    this.#watch = watch
    this.#order = order
    this.#sink = sink
    this.#ending = new Ending(parts, order, sink)
    this.#deadlineAt = this.#deadline(parts.settings.timeouts.total)
  }

  /**
   * Never throws.
   * @param done is called when the sink has its answer
   * @param failed is called instead when it could not even be refused
   */
  run(done: (result: RunResult) => void, failed: (error: unknown) => void): void {
    this.#done = done
    this.#failed = failed
    this.#watch.add(this)
    this.#sink.onGone(() => this.stop(goneFault()))
    if (this.#sink.isGone) this.#refuse(goneFault())
    else this.#next()
  }

  /** Ends it now: an attempt is aborted in this turn, a wait is given up. */
  stop(fault: UpstreamFault): void {
    this.#stopped ??= fault
    this.#current?.stop(this.#stopped)
    this.#waits?.abort(this.#stopped)
  }

  tick(now: number): void {
    if (now <= this.#deadlineAt) this.#current?.tick(now)
    else if (!this.#stopped) this.stop(lateFault())
  }

  /** An attempt is over: answers, or goes on with another. */
  ended(attempt: Attempt, end: AttemptEnd): void {
    this.#current = undefined
    let result: RunResult | UpstreamFault
    try {
      result = this.#resultOf(attempt, end)
    } catch (error) {
      return this.#refuse(error)
    }
    if (!(result instanceof UpstreamFault)) return this.#finish(result)
    this.#first ??= result
    this.#latest = result
    if (this.#mayGoOn(attempt.candidate, result)) this.#next()
    else this.#refuse(result)
  }

  commit(attempt: Attempt): void {
    this.#order.selection.began(attempt.candidate)
    this.#ending.commit(attempt)
  }

  #next(): void {
    try {
      const next = this.#order.selection.next(this.#order.inputTokens, this)
      if (next instanceof Promise) this.#after(next, (candidate) => this.#take(candidate))
      else this.#take(next)
    } catch (error) {
      this.#refuse(error)
    }
  }

  /** Goes on when something that had to be waited for has come. */
  #after<T>(waited: Promise<T>, goOn: (value: T) => void): void {
    waited.then(goOn).catch((error: unknown) => this.#refuse(error))
  }

  /** @throws UpstreamFault, GatewayError when none is left */
  #take(candidate: Candidate | undefined): void {
    if (candidate) {
      this.#hasWaited = false
      return this.#pay(candidate)
    }
    const [first, latest] = [this.#first, this.#latest]
    if (!latest) throw this.#uncalled ?? new GatewayError('no_available_credential', 'nobody can be called now')
    if (first && (this.#hasWaited || !this.#order.selection.mayRetry())) throw first
    this.#hasWaited = true
    this.#after(this.#backOff(latest), () => this.#next())
  }

  /** Sets money aside, then calls. */
  #pay(candidate: Candidate): void {
    let reserved: Reservation | undefined | Promise<Reservation>
    try {
      reserved = reserveFor(this.#parts.budgets, this.#order, candidate)
    } catch (error) {
      return this.#leave(candidate, error)
    }
    if (!(reserved instanceof Promise)) return this.#call(candidate, reserved)
    this.#inTime(reserved)
      .then(
        (reservation) => this.#call(candidate, reservation),
        (error: unknown) => this.#leave(candidate, error),
      )
      .catch((error: unknown) => this.#refuse(error))
  }

  /** Money that comes when the call has been stopped is given back. */
  #inTime(reserved: Promise<Reservation>): Promise<Reservation> {
    const { signal } = this
    void reserved.then(
      (reservation) => (signal.aborted ? reservation.release() : undefined),
      () => undefined,
    )
    return endBefore(signal, reserved, () => this.#stopped ?? lateFault())
  }

  #call(candidate: Candidate, reservation: Reservation | undefined): void {
    let attempt: Attempt
    try {
      if (this.#stopped) throw this.#stopped
      attempt = this.#begin(candidate)
    } catch (error) {
      reservation?.release()
      return this.#leave(candidate, error)
    }
    this.#order.selection.called()
    this.#reservation = reservation
    this.#attemptedAt = this.#parts.clock.now()
    this.#deadlineAt = this.#deadline(factsOf(candidate, this.#parts.settings).limits.totalMs)
    this.#current = attempt
    attempt.run()
  }

  /** A candidate is not called, for want of money or because it cannot be told the request: the next one may be. @throws whatever else was wrong */
  #leave(candidate: Candidate, error: unknown): void {
    this.#order.selection.skip(candidate)
    if (!(error instanceof GatewayError) || !(isOfMoney(error) || error.status === 400)) throw error
    this.#uncalled ??= error
    this.#next()
  }

  /** Counts an attempt, and tells the client of it unless another may answer. */
  #resultOf(attempt: Attempt, end: AttemptEnd): RunResult | UpstreamFault {
    const { fault, answer, last = [] } = end
    const reservation = this.#reservation
    this.#reservation = undefined
    const used = this.#ending.count(attempt, end, this.#attemptedAt)
    const tokens = used ? used.usage.input + used.usage.output : 0
    this.#order.selection.settle(attempt.candidate, fault ?? OK, tokens)
    if (used) reservation?.settle(used.cost)
    else reservation?.release()
    if (answer) return this.#ending.answered(attempt, answer)
    if (!fault) return this.#ending.streamed(attempt, last)
    return attempt.isCommitted ? this.#ending.brokenOff(attempt, fault, last) : fault
  }

  #refuse(error: unknown): void {
    if (!this.#done) return
    let result: RunResult
    try {
      result = this.#ending.refused(this.#explained(error), error instanceof UpstreamFault ? error : undefined)
    } catch (failure) {
      this.#done = undefined
      this.#watch.delete(this)
      return this.#failed?.(failure)
    }
    this.#finish(result)
  }

  #finish(result: RunResult): void {
    const done = this.#done
    this.#done = undefined
    this.#watch.delete(this)
    done?.(result)
  }

  /** Aborts waits in line and between attempts. */
  get signal(): AbortSignal {
    this.#waits ??= new AbortController()
    if (this.#stopped) this.#waits.abort(this.#stopped)
    return this.#waits.signal
  }

  #mayGoOn(candidate: Candidate, fault: UpstreamFault): boolean {
    if (this.#ending.attempts.length >= this.#parts.settings.maxAttempts) return false
    return this.#order.selection.mayFallBack(candidate, fault.class)
  }

  /** Waits before those that failed are tried again. @throws UpstreamFault when that would be too long, or none is left */
  async #backOff(latest: UpstreamFault): Promise<void> {
    const { attempts } = this.#ending
    const leftMs = this.#deadlineAt - this.#parts.monotonic()
    const waitMs = backOffMs(this.#parts, this.#order.selection, { latest, times: ++this.#backOffs, attempts, leftMs })
    await this.#parts.wait(waitMs, this.signal)
    if (this.#stopped) throw this.#stopped
  }

  #begin(candidate: Candidate): Attempt {
    const { visit, request } = this.#order
    const { settings, monotonic, log, makeExchange } = this.#parts
    const exchange = makeExchange(request, candidate)
    return new Attempt({
      candidate,
      exchange,
      surface: request.surface,
      stream: request.stream,
      forwarded: exchange.isRelay ? forwardedOf(candidate, visit.headers) : NONE,
      limits: factsOf(candidate, settings).limits,
      sink: this.#sink,
      owner: this,
      keepsContent: visit.caller.state.settings.content_logging,
      watch: this.#watch,
      turn: visit.turn,
      monotonic,
      log,
    })
  }

  #deadline(totalMs: number): number {
    return this.#order.visit.startedAt + Math.min(totalMs, this.#order.clientLimitMs)
  }

  /** Another candidate may be back sooner than the one that was asked last. Contract: gateway.md 3.3. */
  #limited({ error }: UpstreamFault): GatewayError {
    const { selection } = this.#order
    selection.again()
    return new GatewayError('upstream_rate_limited', error.message, { retryAfterMs: selection.waitMs() })
  }

  /** What the client is told of what went wrong. */
  #explained(error: unknown): GatewayError {
    if (error instanceof UpstreamFault) return error.class === 'rate' ? this.#limited(error) : error.error
    if (error instanceof GatewayError) return error
    this.#parts.log.error({ err: error, request_id: this.#order.family.requestId }, 'a call failed')
    return internalError()
  }
}
