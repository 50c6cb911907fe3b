import type { Health, HealthState, Surface } from '../model.ts'
import type { GatewayCaller, OrganizationState } from '../state/organization-state.ts'
import type { Selection } from './candidate.ts'
import { OrganizationRouting, type RoutingParts } from './organization.ts'
import type { CredentialCondition } from './condition.ts'
import type { Route, Routed } from './route.ts'
import type { ModelEntry } from './scope.ts'
import { restOf, type Rest, RouteSelection } from './selection.ts'

/** Why a name goes where it goes. Contract: gateway.md 3.5 */
export interface RouteExplanation {
  readonly name: string
  readonly candidates: readonly ExplainedCandidate[]
}

export interface ExplainedCandidate {
  readonly credential_id: number
  readonly model: string
  readonly ring: number
  readonly priority: number
  /** Of the next first picks, 0-1. */
  readonly share: number
  readonly state: HealthState
  /** Why it gets no call now. */
  readonly skipped?: Rest | 'model_blocked'
}

const NO_HEALTH: Health = { state: 'unknown', models: [] }

/** From a caller and a name to the credentials that serve it, in memory alone. Contract: gateway.md 4. */
export class Router {
  readonly #parts: RoutingParts
  readonly #organizations = new Map<number, OrganizationRouting>()
  readonly #conditions = new Map<number, CredentialCondition>()

  constructor(parts: RoutingParts) {
    this.#parts = parts
  }

  /** Calls that begin from now on go by this state. */
  update(state: OrganizationState): void {
    const known = this.#organizations.get(state.id)
    if (known) known.update(state)
    else this.#organizations.set(state.id, new OrganizationRouting(this.#parts, this.#conditions, state))
  }

  /**
   * Who may serve the call, before any limit is asked.
   * @param options.pin id or name of the only credential that may
   * @param options.fallback false: the first pick answers or nobody
   * @throws GatewayError 403 `model_blocked`, `model_not_allowed`, `credential_not_allowed`, 404 `model_not_found`
   */
  select(
    caller: GatewayCaller,
    name: string,
    surface: Surface,
    { pin, fallback }: { pin?: string | undefined; fallback: boolean },
  ): Selection {
    const home = this.#homeOf(caller.state)
    const scope = home.scopeOf(caller)
    const route = pin === undefined ? scope.route(name, surface) : scope.pinned(name, surface, pin)
    return new RouteSelection(home, route, pin !== undefined || !fallback)
  }

  /** What `select` would do now; calls nobody, moves no sequence. @throws GatewayError as `select` */
  explain(caller: GatewayCaller, name: string, surface: Surface): RouteExplanation {
    const home = this.#homeOf(caller.state)
    const route = home.scopeOf(caller).route(name, surface)
    const now = this.#parts.clock.now()
    const skipped = new Map(route.all.map((each) => [each, restOf(each, 0, this.#parts.processes(), now)]))
    const shares = sharesOf(route, (each) => skipped.get(each) === undefined)
    const explained = (each: Routed, why: ExplainedCandidate['skipped']): ExplainedCandidate => ({
      credential_id: each.upstream.credential.id,
      model: each.model,
      ring: each.ring,
      priority: each.priority,
      share: shares.get(each) ?? 0,
      state: each.condition.rejectedUntil > now ? 'rejected' : each.modelCondition.stateAt(now).state,
      ...(why && { skipped: why }),
    })
    const inOrder = route.tiers.flatMap(({ choices }) => choices)
    return {
      name,
      candidates: [
        ...inOrder.map((each) => explained(each, skipped.get(each))),
        ...route.blocked.map((each) => explained(each, 'model_blocked')),
      ],
    }
  }

  /** Every name that the caller may use, in order. Contract: gateway.md 3.2 */
  models(caller: GatewayCaller): readonly ModelEntry[] {
    return this.#homeOf(caller.state).scopeOf(caller).models()
  }

  /** As this process knows it. */
  healthOf(credentialId: number): Health {
    return this.#conditions.get(credentialId)?.healthAt(this.#parts.clock.now()) ?? NO_HEALTH
  }

  /** Somebody has mended or tried the credential: every rest of it ends here. */
  recover(credentialId: number): void {
    this.#conditions.get(credentialId)?.recover()
  }

  #homeOf(state: OrganizationState): OrganizationRouting {
    const known = this.#organizations.get(state.id)
    if (known && known.state.revision >= state.revision) return known
    this.update(state)
    return this.#homeOf(state)
  }
}

/** Parts of the first picks: of the first tier where somebody is available. */
function sharesOf({ tiers }: Route, isAvailable: (candidate: Routed) => boolean): Map<Routed, number> {
  for (const { choices } of tiers) {
    const available = choices.filter(isAvailable)
    const total = available.reduce((sum, { weight }) => sum + weight, 0)
    const [first] = available
    if (total > 0) return new Map(available.map((each) => [each, each.weight / total]))
    if (first) return new Map([[first, 1]])
  }
  return new Map()
}
