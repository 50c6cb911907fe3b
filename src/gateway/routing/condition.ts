import { toTimestamp } from '../../base/clock.ts'
import { HEALTH_STATES, type Health, type HealthState } from '../model.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { Breaker } from './breaker.ts'
import { Quota } from './quota.ts'
import { Recent } from './recent.ts'

const FIRST_REJECTED_MS = 60_000
const MAX_REJECTED_MS = 900_000
const RATE_MS = 5_000
const MAX_RATE_MS = 300_000
/** How long a failure makes a model degraded: the window of its breaker. */
const DEGRADED_MS = 30_000
const MODELS = 200

/** Of one model of one credential: whether the provider wants no calls of it now, or fails them. Contract: gateway.md 4.5. */
export class ModelCondition {
  /** Epoch ms. */
  coolingUntil = 0
  readonly breaker = new Breaker()

  /** The provider has enough for now. @param retryAfterMs as it asks */
  cool(now: number, retryAfterMs = RATE_MS): void {
    const restMs = Math.min(Math.max(retryAfterMs, 0), MAX_RATE_MS)
    this.coolingUntil = Math.max(this.coolingUntil, now + restMs)
  }

  stateAt(now: number): { state: HealthState; until: number } {
    if (this.coolingUntil > now) return { state: 'cooling', until: this.coolingUntil }
    const openUntil = this.breaker.restsUntil(now)
    if (openUntil > 0) return { state: 'open', until: openUntil }
    return this.breaker.isDegraded(now)
      ? { state: 'degraded', until: now + DEGRADED_MS }
      : { state: 'healthy', until: now }
  }
}

/** What this process knows of a credential beyond its record: outlives changes of the record. */
export class CredentialCondition {
  readonly quota: Quota
  /** Its provider takes it for no good until then (epoch ms). */
  rejectedUntil: number
  readonly #models = new Recent<string, ModelCondition>(MODELS)
  #version: number
  #isBroken: boolean
  /** As the record said it last: another process found it, or ended it. */
  #told: number | undefined
  #rejections = 0
  #checkedAt = 0

  constructor(credential: OpenCredential) {
    this.quota = new Quota(credential.limits)
    this.#version = credential.version
    this.#told = credential.rejectedUntil
    this.#isBroken = credential.isBroken
    this.rejectedUntil = this.#isBroken ? Infinity : (credential.rejectedUntil ?? 0)
  }

  get version(): number {
    return this.#version
  }

  /** Takes over the record as it is now: a new version ends every rest. */
  update(credential: OpenCredential): void {
    const { version, isBroken, rejectedUntil } = credential
    const isOther = version !== this.#version || isBroken !== this.#isBroken
    this.quota.limits = credential.limits
    this.#version = version
    this.#isBroken = isBroken
    if (isOther) this.recover()
    if (rejectedUntil !== this.#told && !isBroken) this.rejectedUntil = rejectedUntil ?? 0
    this.#told = rejectedUntil
  }

  /** Somebody has mended it, or a test went well: ends every rest. */
  recover(): void {
    this.rejectedUntil = this.#isBroken ? Infinity : 0
    this.#rejections = 0
    for (const [, model] of this.#models.entries()) {
      model.coolingUntil = 0
      model.breaker.reset()
    }
  }

  model(name: string): ModelCondition {
    const known = this.#models.get(name)
    if (known) return known
    const made = new ModelCondition()
    this.#models.set(name, made)
    return made
  }

  succeed(now: number): void {
    this.#rejections = 0
    this.#checkedAt = now
  }

  /** Its key was refused. @returns until when it rests now; undefined while it does already */
  reject(now: number): number | undefined {
    this.#checkedAt = now
    if (this.rejectedUntil > now) return undefined
    this.rejectedUntil = now + Math.min(FIRST_REJECTED_MS * 2 ** this.#rejections++, MAX_REJECTED_MS)
    return this.rejectedUntil
  }

  healthAt(now: number): Health {
    const models = [...this.#models.entries()]
      .map(([model, condition]) => ({ model, ...condition.stateAt(now) }))
      .filter(({ state }) => state !== 'healthy')
    const states = models.map(({ state }) => state)
    states.push(this.#ownState(now))
    const rests = models.filter(({ state }) => state !== 'degraded').map(({ until }) => until)
    if (this.rejectedUntil > now) rests.push(this.rejectedUntil)
    const until = Math.max(0, ...rests.filter(Number.isFinite))
    return {
      state: worstOf(states),
      ...(until > 0 && { cooldown_until: toTimestamp(until) }),
      models: models.map((each) => ({ ...each, until: toTimestamp(each.until) })),
      ...(this.#checkedAt > 0 && { checked_at: toTimestamp(this.#checkedAt) }),
    }
  }

  #ownState(now: number): HealthState {
    if (this.rejectedUntil > now) return 'rejected'
    // Its rest is over, but its key was refused when it was last called.
    if (this.#rejections > 0) return 'degraded'
    return this.#checkedAt > 0 ? 'healthy' : 'unknown'
  }
}

const worstOf = (states: readonly HealthState[]): HealthState =>
  HEALTH_STATES.findLast((state) => states.includes(state)) ?? 'unknown'
