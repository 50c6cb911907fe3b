import { estimateCeiling } from '../cost/pricing.ts'
import { GatewayError } from '../errors.ts'
import { outputCap } from '../exchange/estimate.ts'
import { UpstreamFault } from '../exchange/exchange.ts'
import type { Reservation } from '../metering/metering.ts'
import type { Candidate, Selection, Waiting } from '../routing/candidate.ts'
import type { GatewayCaller } from '../state/organization-state.ts'
import { Attempt } from './attempt.ts'
import { factsOf } from './candidate-facts.ts'
import { Ending } from './ending.ts'
import { goneFault, internalError, lateFault } from './faults.ts'
import { forwardedOf, NONE } from './forwarded.ts'
import type { Inference } from './judge.ts'
import type { PlaneParts, RunResult } from './parts.ts'
import type { Family } from './refusal.ts'
import type { AnswerSink } from './sink.ts'
import type { Visit } from './visit.ts'
import type { Watch, Watched } from './watch.ts'

const FIRST_BACK_OFF_MS = 250
const MAX_BACK_OFF_MS = 4000
/** A timer may be a little early. */
const EARLY_MS = 2
const OK = { class: 'ok' } as const
const UNCALLED = { class: 'closed' } as const

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
 * One call: its attempts, one after the other, until one answers into the sink; and its usage record. Contract: gateway.md
 * 4.4-4.6, 6.
 */
export class Call implements Watched, Waiting {
  place = -1
  readonly #parts: PlaneParts
  readonly #watch: Watch
  readonly #order: CallOrder
  readonly #sink: AnswerSink
  readonly #ending: Ending
  #current: Attempt | undefined
  #deadlineAt: number
  /** Why it must end before its time. */
  #stopped: UpstreamFault | undefined
  #waits: AbortController | undefined
  /** Why a candidate was not called: no money could be set aside. */
  #unpaid: GatewayError | undefined

  constructor(parts: PlaneParts, watch: Watch, order: CallOrder, sink: AnswerSink) {
    this.#parts = parts
    this.#watch = watch
    this.#order = order
    this.#sink = sink
    this.#ending = new Ending(parts, order, sink)
    this.#deadlineAt = this.#deadline(parts.settings.timeouts.total)
  }

  /** Never rejects. */
  async run(): Promise<RunResult> {
    this.#watch.add(this)
    this.#sink.onGone(() => this.stop(goneFault()))
    try {
      if (this.#sink.isGone) throw goneFault()
      return await this.#untilAnswered()
    } catch (error) {
      return this.#ending.refused(this.#explained(error))
    } finally {
      this.#watch.delete(this)
    }
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

  /** @throws UpstreamFault, GatewayError when none answers */
  async #untilAnswered(): Promise<RunResult> {
    const { selection, inputTokens } = this.#order
    let first: UpstreamFault | undefined
    let latest: UpstreamFault | undefined
    let backOffs = 0
    for (let hasWaited = false; ;) {
      const next = selection.next(inputTokens, this)
      const candidate = next instanceof Promise ? await next : next
      if (candidate) {
        hasWaited = false
        const end = await this.#attempt(candidate)
        if (end instanceof GatewayError) this.#unpaid = end
        else if (!(end instanceof UpstreamFault)) return end
        else {
          first ??= end
          latest = end
          if (!this.#mayGoOn(candidate, end)) throw end
        }
      } else if (!latest) throw this.#unpaid ?? new GatewayError('no_available_credential', 'nobody can be called now')
      // Who may be tried once more is not: the organization's further attempts are used up.
      else if (hasWaited && first) throw first
      else {
        await this.#backOff(latest, ++backOffs)
        hasWaited = true
      }
    }
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

  /** Waits before those that failed are tried again. @throws UpstreamFault, GatewayError when that would be too long, or none is left */
  async #backOff(latest: UpstreamFault, times: number): Promise<void> {
    const { selection } = this.#order
    const { random, settings, monotonic, wait } = this.#parts
    const restMs = selection.again() ? selection.waitMs() : undefined
    if (restMs === undefined) throw latest
    const bound = Math.min(FIRST_BACK_OFF_MS * 2 ** (times - 1), MAX_BACK_OFF_MS)
    const waitMs = restMs > 0 ? restMs + EARLY_MS : bound * (0.5 + random() / 2)
    const isTooLong = restMs > settings.maxRetryAfterMs || monotonic() + waitMs > this.#deadlineAt
    const wasLimited = this.#ending.attempts.some((each) => each.class === 'rate')
    if (latest.class === 'rate' && isTooLong) {
      throw new GatewayError('upstream_rate_limited', latest.error.message, { retryAfterMs: restMs })
    }
    // Who asked to wait is waited for; who rests after failures is not.
    if (isTooLong || (restMs > 0 && !wasLimited)) throw latest
    await wait(waitMs, this.signal)
    if (this.#stopped) throw this.#stopped
  }

  /**
   * Calls a candidate.
   * @returns how it answered, why it failed, or why no money was set aside for it
   * @throws GatewayError 400 for what cannot be said there
   */
  async #attempt(candidate: Candidate): Promise<RunResult | UpstreamFault | GatewayError> {
    const { selection } = this.#order
    let reservation: Reservation | undefined
    let attempt: Attempt
    try {
      const reserved = this.#reserve(candidate)
      reservation = reserved instanceof Promise ? await reserved : reserved
      if (this.#stopped) throw this.#stopped
      attempt = this.#begin(candidate)
    } catch (error) {
      reservation?.release()
      selection.settle(candidate, UNCALLED, 0)
      if (error instanceof GatewayError && isOfMoney(error)) return error
      throw error
    }
    const startedAt = this.#parts.clock.now()
    this.#deadlineAt = this.#deadline(factsOf(candidate, this.#parts.settings).limits.totalMs)
    this.#current = attempt
    const end = await attempt.run()
    this.#current = undefined
    const { fault, answer, last = [] } = end
    const used = this.#ending.count(attempt, end, startedAt)
    const tokens = used ? used.usage.input + used.usage.output : 0
    selection.settle(candidate, fault ?? OK, tokens)
    if (used) reservation?.settle(used.cost)
    else reservation?.release()
    if (answer) return this.#ending.answered(attempt, answer)
    if (!fault) return this.#ending.streamed(attempt, last)
    return attempt.isCommitted ? this.#ending.brokenOff(attempt, fault, last) : fault
  }

  /** @throws GatewayError 429 `budget_exceeded`, 403 `price_unknown` */
  #reserve(candidate: Candidate): Reservation | undefined | Promise<Reservation> {
    const { visit, request, inputTokens } = this.#order
    if (!hasBudget(visit.caller)) return undefined
    const cap = request.surface === 'embeddings' ? 0 : outputCap(request)
    return this.#parts.budgets.reserve(visit.caller, estimateCeiling(candidate.row, inputTokens, cap))
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
      keepsContent: visit.caller.state.settings.content_logging,
      commit: (attempt) => this.#ending.commit(attempt),
      watch: this.#watch,
      monotonic,
      log,
    })
  }

  #deadline(totalMs: number): number {
    return this.#order.visit.startedAt + Math.min(totalMs, this.#order.clientLimitMs)
  }

  /** What the client is told of what went wrong. */
  #explained(error: unknown): GatewayError {
    if (error instanceof UpstreamFault) return error.error
    if (error instanceof GatewayError) return error
    this.#parts.log.error({ err: error, request_id: this.#order.family.requestId }, 'a call failed')
    return internalError()
  }
}

const hasBudget = ({ key, state: { settings } }: GatewayCaller): boolean =>
  settings.cost_tracking && (key?.budget !== undefined || settings.budget !== null || settings.user_budget !== null)

const isOfMoney = ({ code }: GatewayError): boolean => code === 'budget_exceeded' || code === 'price_unknown'
