import type { ModelRow } from '../cost/model-table.ts'
import type { Upstream } from '../kinds/upstream.ts'
import type { Alias, Dialect, FailureClass } from '../model.ts'

/** A credential and upstream model able to serve a name. */
export interface Candidate {
  readonly upstream: Upstream
  /** Upstream name. */
  readonly model: string
  /** The name it serves: the asked one, or a fallback's. */
  readonly name: string
  readonly alias: Alias | undefined
  /** 0 for members of an alias. */
  readonly ring: 0 | 1 | 2 | 3 | 4
  readonly priority: number
  /** Thousandths. */
  readonly weight: number
  readonly dialect: Dialect
  readonly row: ModelRow | undefined
}

/** How an attempt ended, for cooldowns and breakers. */
export type AttemptOutcome =
  | { readonly class: 'ok' }
  | {
      readonly class: FailureClass
      readonly retryAfterMs?: number | undefined
      readonly status?: number | undefined
      /** Redacted. */
      readonly message?: string | undefined
    }

/** What a provider said that takes a credential for no good. */
export interface Rejection {
  /** Absent where no answer said it. */
  readonly status?: number | undefined
  /** Redacted. */
  readonly message: string
}

/** Who may have to wait, and whose signal ends that: taken only then, as making one takes longer than all else of a pick. */
export interface Waiting {
  readonly signal: AbortSignal
}

/** The candidates of one request, in the order in which they are to be tried. Contract: gateway.md 4.2-4.6. */
export interface Selection {
  /** The alias that was asked for. */
  readonly alias: Alias | undefined
  /** Those that could be called at this moment; takes nothing. */
  available(): readonly Candidate[]
  /**
   * The next one that is available and was not tried yet, with its slot and its share of rates taken; waits in line where
   * all are full. Undefined when there is none left, or the retry budget of the organization is used up. The one before
   * must be settled or skipped.
   * @param tokens estimated of this call, for token rates
   * @throws GatewayError 429 `upstream_rate_limited`, `concurrency_exceeded` or 503 `no_available_credential` when none was
   *   called and those left cannot be called now; the signal's reason when it aborts a wait
   */
  next(tokens: number, waiting: Waiting): Candidate | undefined | Promise<Candidate | undefined>
  /** The one that came last is called: only that is an attempt, of which there are so many. Contract: gateway.md 4.4 */
  called(): void
  /** It will not be called: gives back all that was taken for it. */
  skip(candidate: Candidate): void
  /** Whether another candidate may answer after a failure of this class: `fallback_on` of the alias, else the usual ones. */
  mayFallBack(candidate: Candidate, failure: FailureClass): boolean
  /** Whether there may be further attempts at all: the organization's are not used up. Contract: gateway.md 4.4 */
  mayRetry(): boolean
  /** Makes those that failed by connect, transient or rate eligible again, for a round after back-off; false when there is none. */
  again(): boolean
  /** How long until one of those not tried yet can be called: 0 = now, undefined when none is left. */
  waitMs(): number | undefined
  /** It answers, though not to the end yet: a stream may take minutes, and a probe need not keep others out so long. */
  began(candidate: Candidate): void
  /** Ends the attempt: gives its slot back, settles its tokens, feeds cooldown and breaker. The second time nothing happens. */
  settle(candidate: Candidate, outcome: AttemptOutcome, tokens: number): void
}
