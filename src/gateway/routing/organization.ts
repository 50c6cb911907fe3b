import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { ModelTable } from '../cost/model-table.ts'
import type { Upstream } from '../kinds/upstream.ts'
import type { GatewayCaller, OpenCredential, OpenKey, OrganizationState } from '../state/organization-state.ts'
import { visibleAliases } from './aliases.ts'
import type { Rejection } from './candidate.ts'
import { CredentialCondition } from './condition.ts'
import { Line } from './line.ts'
import { Names } from './names.ts'
import { WeightedPick } from './pick.ts'
import { Recent } from './recent.ts'
import { RecentCounts } from './recent-counts.ts'
import type { Routed } from './route.ts'
import { Scope } from './scope.ts'
import { connect, type Connection } from './serves.ts'

const SEQUENCES = 5000
const SCOPES = 500
/** Candidates of all routes remembered, before they are all compiled anew as they are asked for. */
const CANDIDATES = 50_000
/** Sequences of picks begin anywhere within so many. */
const FIRST_PICKS = 101
const RETRY_WINDOW_MS = 10_000
/** Further attempts that are always allowed within the window. */
const FREE_RETRIES = 10

export interface RoutingParts {
  readonly clock: Clock
  readonly models: ModelTable
  /** Called once for each version of a credential; must not throw. */
  readonly makeUpstream: (credential: OpenCredential) => Upstream
  /** Where sequences of picks begin: the same for the same picks. `gateway.seed`, else any number. */
  readonly seed: number
  /** Further attempts for each request, over ten seconds. */
  readonly retryBudget: number
  readonly queueLength: number
  readonly queueWaitMs: number
  /** How many live processes share the limits of credentials. */
  readonly processes: () => number
  /** A provider took a credential for no good: for the record, and for other processes. */
  readonly onRejected: (credential: OpenCredential, untilMs: number, rejection: Rejection) => void
}

/** The routing of one organization: its table as it is now, and what outlives changes of it. */
export class OrganizationRouting {
  readonly parts: RoutingParts
  readonly line: Line<Routed>
  readonly #attempts = new RecentCounts(RETRY_WINDOW_MS)
  /** Of every organization. */
  readonly #conditions: Map<number, CredentialCondition>
  readonly #upstreams = new Map<number, Upstream>()
  readonly #sequences = new Recent<string, Float64Array<ArrayBuffer>>(SEQUENCES)
  #state: OrganizationState
  #connections: readonly Connection[] = []
  /** Users with credentials or aliases of their own; the others share one scope. */
  #owners: ReadonlySet<number | undefined> = new Set()
  #blocked = new Names([])
  #scopes = new Recent<string, Scope>(SCOPES)
  #scopesOfKeys = new WeakMap<OpenKey, Scope>()
  #kept = 0

  constructor(parts: RoutingParts, conditions: Map<number, CredentialCondition>, state: OrganizationState) {
    this.parts = parts
    this.#conditions = conditions
    this.line = new Line(parts.queueLength, parts.queueWaitMs)
    this.#state = state
    this.update(state)
  }

  get state(): OrganizationState {
    return this.#state
  }

  /** Requests from now on go by this; those that run keep what they have. */
  update(state: OrganizationState): void {
    const ids = new Set(state.credentials.map(({ id }) => id))
    for (const { id } of this.#state.credentials) if (!ids.has(id)) this.#drop(id)
    this.#state = state
    this.#connections = state.credentials
      .map((credential) => connect(credential, this.#conditionOf(credential)))
      .sort((a, b) => a.credential.id - b.credential.id)
    this.#owners = new Set([
      ...state.credentials.map(({ userId }) => userId),
      ...state.aliases.map(({ user_id: userId }) => userId),
    ])
    this.#blocked = new Names(state.settings.blocked_models)
    this.#forgetRoutes()
    this.line.pump()
  }

  scopeOf({ userId, key }: GatewayCaller): Scope {
    if (key) {
      const known = this.#scopesOfKeys.get(key)
      if (known) return known
    }
    const owner = userId !== undefined && this.#owners.has(userId) ? userId : undefined
    const scope = this.#scope(owner, key)
    if (key) this.#scopesOfKeys.set(key, scope)
    return scope
  }

  /** Whether a request that failed may be tried once more, or others have used up what all may. Contract: gateway.md 4.4. */
  mayRetry(now: number): boolean {
    const { all, some } = this.#attempts.at(now)
    return some < Math.max(FREE_RETRIES, Math.floor(this.parts.retryBudget * (all - some)))
  }

  countAttempt(isFurther: boolean, now: number): void {
    this.#attempts.add(now, isFurther)
  }

  #scope(owner: number | undefined, key: OpenKey | undefined): Scope {
    const isFree = !key || (key.allowedModels.length === 0 && key.allowedCredentials.length === 0)
    const id = isFree ? `${owner}` : JSON.stringify([owner, key.allowedModels, key.allowedCredentials])
    const known = this.#scopes.get(id)
    if (known) return known
    const made = this.#makeScope(owner, key)
    this.#scopes.set(id, made)
    return made
  }

  #makeScope(userId: number | undefined, key: OpenKey | undefined): Scope {
    const { settings, aliases } = this.#state
    return new Scope({
      connections: this.#connections.filter(({ credential: { id, enabled, userId: owner } }) => {
        const isVisible = owner === undefined || (owner === userId && settings.private_credentials)
        const isAllowed = !key || key.allowedCredentials.length === 0 || key.allowedCredentials.includes(id)
        return enabled && isVisible && isAllowed
      }),
      aliases: visibleAliases(aliases, userId),
      models: this.parts.models,
      blocked: this.#blocked,
      allowed: new Names(key?.allowedModels ?? []),
      upstreamOf: (connection) => this.#upstreamOf(connection),
      sequenceOf: (signature, choices) => this.#sequenceOf(signature, choices),
      onKept: (candidates) => {
        this.#kept += candidates
        if (this.#kept > CANDIDATES) this.#forgetRoutes()
      },
    })
  }

  #forgetRoutes(): void {
    this.#scopes = new Recent(SCOPES)
    this.#scopesOfKeys = new WeakMap()
    this.#kept = 0
  }

  #drop(credentialId: number): void {
    this.#conditions.delete(credentialId)
    this.#upstreams.delete(credentialId)
  }

  #conditionOf(credential: OpenCredential): CredentialCondition {
    const known = this.#conditions.get(credential.id)
    known?.update(credential)
    const condition = known ?? new CredentialCondition(credential)
    this.#conditions.set(credential.id, condition)
    return condition
  }

  #upstreamOf({ credential }: Connection): Upstream {
    const known = this.#upstreams.get(credential.id)
    if (known?.credential.version === credential.version && known.credential.isBroken === credential.isBroken)
      return known
    const made = this.parts.makeUpstream(credential)
    this.#upstreams.set(credential.id, made)
    return made
  }

  #sequenceOf(signature: string, choices: readonly Routed[]): Float64Array<ArrayBuffer> {
    const known = this.#sequences.get(signature)
    if (known) return known
    const sequence = new Float64Array(choices.length)
    const hash = createHash('sha256').update(`${this.parts.seed}\n${signature}`).digest().readUInt32BE(0)
    new WeightedPick(choices, sequence).skip(hash % FIRST_PICKS)
    this.#sequences.set(signature, sequence)
    return sequence
  }
}
