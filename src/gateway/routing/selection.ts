import { GatewayError } from '../errors.ts'
import type { Alias, FailureClass } from '../model.ts'
import type { AttemptOutcome, Candidate, Selection, Waiting } from './candidate.ts'
import type { OrganizationRouting } from './organization.ts'
import type { Gate } from './pick.ts'
import type { Route, Routed } from './route.ts'

/** When to come again where nothing says it. */
const UNKNOWN_WAIT_MS = 60_000

const USUAL_FALLBACK: ReadonlySet<FailureClass> = new Set(['connect', 'transient', 'rate', 'auth', 'missing'])

/** What may be over soon: who failed so may be tried again. */
const MAY_PASS: ReadonlySet<AttemptOutcome['class']> = new Set(['connect', 'transient', 'rate'])

/** What keeps a candidate from being called now. */
export type Rest = 'rejected' | 'cooling' | 'open' | 'full' | 'out_of_quota'

/** Why a candidate cannot be called at this moment; undefined when it can. Contract: gateway.md 4.5, 4.6. */
export function restOf(
  { condition, modelCondition }: Routed,
  tokens: number,
  processes: number,
  now: number,
): Rest | undefined {
  if (condition.rejectedUntil > now) return 'rejected'
  if (modelCondition.coolingUntil > now) return 'cooling'
  if (modelCondition.breaker.restsUntil(now) > 0) return 'open'
  if (condition.quota.isFull(processes)) return 'full'
  return condition.quota.waitMs(tokens, processes, now) > 0 ? 'out_of_quota' : undefined
}

/** Milliseconds until what keeps it may be over. */
function restMs(candidate: Routed, rest: Rest, tokens: number, processes: number, now: number): number {
  const { condition, modelCondition } = candidate
  switch (rest) {
    case 'rejected':
      return condition.rejectedUntil - now
    case 'cooling':
      return modelCondition.coolingUntil - now
    case 'open':
      return modelCondition.breaker.restsUntil(now) - now
    case 'full':
      return 0
    case 'out_of_quota':
      return condition.quota.waitMs(tokens, processes, now)
  }
}

/** The way of one request through the candidates of its route. */
export class RouteSelection implements Selection, Gate<Routed> {
  readonly #home: OrganizationRouting
  readonly #route: Route
  /** Of the first tier one alone, however often. */
  readonly #isSingle: boolean
  readonly #tried: Routed[] = []
  /** Of those tried: failed in a way that may be over soon. */
  readonly #retryable: Routed[] = []
  #first: Routed | undefined
  /** One that was picked has been called. */
  #hasCalled = false
  /** What was picked confines what may replace it. */
  #group: string | undefined
  #running: Routed | undefined
  #isProbe = false
  #tokens = 0
  #now = 0
  #processes = 1

  constructor(home: OrganizationRouting, route: Route, isSingle: boolean) {
    this.#home = home
    this.#route = route
    this.#isSingle = isSingle
  }

  get alias(): Alias | undefined {
    return this.#route.alias
  }

  available(): readonly Candidate[] {
    this.#look(0)
    return this.#candidates().filter((each) => this.#rest(each) === undefined)
  }

  next(tokens: number, waiting: Waiting): Candidate | undefined | Promise<Candidate | undefined> {
    const { line } = this.#home
    if (!line.isEmpty) line.pump()
    this.#look(tokens)
    if (this.#hasCalled && !this.#home.mayRetry(this.#now)) return undefined
    return this.#take() ?? this.#lack(waiting)
  }

  called(): void {
    this.#home.countAttempt(this.#hasCalled, this.#now)
    this.#hasCalled = true
  }

  skip(candidate: Candidate): void {
    const skipped = this.#stop(candidate)
    if (!skipped) return
    skipped.condition.quota.giveBack(this.#tokens)
    skipped.modelCondition.breaker.forget(this.#isProbe)
    this.#home.line.pump()
  }

  mayFallBack({ alias }: Candidate, failure: FailureClass): boolean {
    const on = (alias ?? this.alias)?.fallback_on
    return on ? on.includes(failure) : USUAL_FALLBACK.has(failure)
  }

  mayRetry(): boolean {
    return this.#home.mayRetry(this.#home.parts.clock.now())
  }

  again(): boolean {
    const failed = this.#retryable.splice(0)
    for (const each of failed) this.#tried.splice(this.#tried.indexOf(each), 1)
    return failed.length > 0
  }

  waitMs(): number | undefined {
    this.#look(this.#tokens)
    const rests = this.#candidates().map((each) => this.#rest(each)?.ms ?? 0)
    return rests.length === 0 ? undefined : Math.min(...rests)
  }

  began(candidate: Candidate): void {
    if (!this.#isProbe || this.#running !== candidate) return
    this.#isProbe = false
    this.#running.modelCondition.breaker.reset()
  }

  settle(candidate: Candidate, outcome: AttemptOutcome, tokens: number): void {
    const running = this.#stop(candidate)
    if (!running) return
    const { condition } = running
    condition.quota.release()
    condition.quota.settle(this.#tokens, tokens)
    this.#learn(running, outcome)
    const { line } = this.#home
    if (!line.isEmpty) line.pump()
  }

  /** Undefined when it does not run any more. */
  #stop(candidate: Candidate): Routed | undefined {
    const running = this.#running
    if (running !== candidate) return undefined
    this.#running = undefined
    return running
  }

  /** Whether it may be picked now. */
  admits(candidate: Routed): boolean {
    return this.#isLeft(candidate) && restOf(candidate, this.#tokens, this.#processes, this.#now) === undefined
  }

  #look(tokens: number): void {
    const { clock, processes } = this.#home.parts
    this.#tokens = tokens
    this.#now = clock.now()
    this.#processes = processes()
  }

  #isLeft(candidate: Routed): boolean {
    if (this.#group !== undefined && candidate.group !== this.#group) return false
    if (this.#isSingle && this.#first && candidate !== this.#first) return false
    return !this.#tried.includes(candidate)
  }

  #take(): Routed | undefined {
    const { tiers } = this.#route
    const reach = this.#isSingle ? 1 : tiers.length
    for (let i = 0; i < reach; i++) {
      const picked = tiers[i]?.next(this)
      if (picked === undefined) continue
      this.#first ??= picked
      this.#tried.push(picked)
      this.#group = picked.group ?? this.#group
      this.#running = picked
      this.#isProbe = picked.modelCondition.breaker.begin()
      picked.condition.quota.take(this.#tokens)
      return picked
    }
    return undefined
  }

  /** Nobody can be called now: waits for a slot if it is slots that lack. */
  #lack(waiting: Waiting): Promise<Routed | undefined> | undefined {
    const rests = this.#candidates().flatMap((each) => this.#rest(each) ?? [])
    if (!rests.some(({ rest }) => rest === 'full')) {
      // Where those that were picked could not be called, and nobody is left, the caller knows why.
      if (!this.#hasCalled && (rests.length > 0 || !this.#first)) throw allRestError(rests)
      return undefined
    }
    const { line } = this.#home
    if (!line.isFull) return this.#stand(waiting.signal)
    if (!this.#hasCalled)
      throw new GatewayError('concurrency_exceeded', 'Every credential is busy, and so is the line', WAIT)
    return undefined
  }

  async #stand(signal: AbortSignal): Promise<Routed | undefined> {
    const attempt = (): Routed | undefined => {
      this.#look(this.#tokens)
      return this.#take()
    }
    const got = await this.#home.line.wait(attempt, signal)
    if (!got && !this.#hasCalled) throw new GatewayError('concurrency_exceeded', 'Every credential stayed busy', WAIT)
    return got
  }

  /** Those that could still be tried, if nothing kept them. */
  #candidates(): Routed[] {
    const { all, tiers } = this.#route
    const reach = this.#isSingle ? (tiers[0]?.choices ?? []) : all
    return reach.filter((each) => this.#isLeft(each))
  }

  #rest(candidate: Routed): { rest: Rest; ms: number } | undefined {
    const rest = restOf(candidate, this.#tokens, this.#processes, this.#now)
    return rest && { rest, ms: restMs(candidate, rest, this.#tokens, this.#processes, this.#now) }
  }

  #learn(candidate: Routed, outcome: AttemptOutcome): void {
    const { condition, modelCondition, upstream } = candidate
    const { breaker } = modelCondition
    const now = this.#home.parts.clock.now()
    if (MAY_PASS.has(outcome.class)) this.#retryable.push(candidate)
    // What comes of a call that began before the credential was changed says nothing of it as it is now.
    if (upstream.credential.version !== condition.version) return
    switch (outcome.class) {
      case 'ok':
        condition.succeed(now)
        return breaker.succeed(this.#isProbe, now)
      case 'connect':
      case 'transient':
        return breaker.fail(this.#isProbe, now)
      case 'rate':
        modelCondition.cool(now, outcome.retryAfterMs)
        return breaker.forget(this.#isProbe)
      case 'auth': {
        const until = condition.reject(now)
        const { status, message = '' } = outcome
        if (until !== undefined) this.#home.parts.onRejected(upstream.credential, until, { status, message })
        return breaker.forget(this.#isProbe)
      }
      default:
        return breaker.forget(this.#isProbe)
    }
  }
}

const WAIT = { retryAfterMs: 1000 }

function allRestError(rests: readonly { rest: Rest; ms: number }[]): GatewayError {
  const shortest = Math.min(...rests.map(({ ms }) => ms))
  const retryAfterMs = Number.isFinite(shortest) ? Math.max(1, Math.ceil(shortest)) : UNKNOWN_WAIT_MS
  return rests.length > 0 && rests.every(({ rest }) => rest === 'cooling' || rest === 'out_of_quota')
    ? new GatewayError('upstream_rate_limited', 'Every provider of this model asks to wait', { retryAfterMs })
    : new GatewayError('no_available_credential', 'Every credential for this model rests after failures', {
        retryAfterMs,
      })
}
