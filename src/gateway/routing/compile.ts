import type { ModelTable } from '../cost/model-table.ts'
import { rowOf } from '../cost/pricing.ts'
import type { Upstream } from '../kinds/upstream.ts'
import type { Alias, Surface } from '../model.ts'
import { type Found, membersOf } from './aliases.ts'
import type { Names } from './names.ts'
import { type Route, type Routed, type SequenceOf, tiersOf } from './route.ts'
import { admits, type Connection, type Serves, serversOf, upstreamName } from './serves.ts'

/** What names are resolved with: what one sort of caller may use. */
export interface Usable {
  readonly connections: readonly Connection[]
  readonly aliases: ReadonlyMap<string, Alias>
  readonly models: ModelTable
  /** Names nobody may use: as asked, of members of aliases and behind `<kind>/` too, and upstream. */
  readonly blocked: Names
  /** Asked and fallback names of the key; empty = any. */
  readonly allowed: Names
  upstreamOf(connection: Connection): Upstream
  readonly sequenceOf: SequenceOf
  /** A route of so many candidates is remembered. */
  onKept(candidates: number): void
}

export const mayUse = ({ blocked, allowed }: Usable, name: string): boolean =>
  !blocked.has(name) && (allowed.isEmpty || allowed.has(name))

/**
 * Who serves a name, and after them those who serve the names that stand in for it. Contract: gateway.md 4.2, 4.3.
 * @param pinned the only credential that may serve it
 */
export function compileRoute(usable: Usable, name: string, surface: Surface, pinned?: Connection): Route {
  const all: Routed[] = []
  const blocked: Routed[] = []
  const tiers: Route['tiers'][number][] = []
  const seen = new Set<string>()
  for (const each of pinned ? [name] : chainOf(usable, name)) {
    const found = candidatesOf(usable, each, surface, pinned).filter(({ upstream, model, isBlocked }) => {
      const id = `${upstream.credential.id}/${isBlocked}/${model}`
      return !seen.has(id) && seen.add(id)
    })
    const allowed = found.filter(({ isBlocked }) => !isBlocked)
    all.push(...allowed)
    tiers.push(...tiersOf(allowed, usable.sequenceOf))
    blocked.push(...found.filter(({ isBlocked }) => isBlocked))
  }
  return { alias: usable.aliases.get(name), all, tiers, blocked }
}

/** Whether anybody serves it. */
export const isServed = (usable: Usable, name: string, surface: Surface): boolean =>
  [...chainOf(usable, name)].some((each) => candidatesOf(usable, each, surface).some(({ isBlocked }) => !isBlocked))

/** The name and those that stand in for it, in turn; each once, so that cycles end. */
function chainOf(usable: Usable, name: string): Set<string> {
  const chain = new Set([name])
  const visit = (each: string): void => {
    for (const next of usable.aliases.get(each)?.fallback_models ?? []) {
      if (chain.has(next) || !mayUse(usable, next)) continue
      chain.add(next)
      visit(next)
    }
  }
  visit(name)
  return chain
}

function candidatesOf(usable: Usable, name: string, surface: Surface, pinned?: Connection): Routed[] {
  const alias = usable.aliases.get(name)
  const connections = pinned ? [pinned] : usable.connections
  const serves: Serves = (connection, asked) =>
    admits(connection, asked) && usable.upstreamOf(connection).serves(surface, upstreamName(connection, asked))
  const found = alias
    ? membersOf(alias, connections).filter((each) => serves(each.connection, each.name))
    : serversOf(connections, name, usable.models, { serves, isPinned: pinned !== undefined })
  return found.map((each) => routed(usable, name, each))
}

function routed(usable: Usable, name: string, found: Found): Routed {
  const { credential, condition, baseModel } = found.connection
  const upstream = usable.upstreamOf(found.connection)
  const model = upstreamName(found.connection, found.name)
  return {
    upstream,
    model,
    name,
    alias: found.alias,
    ring: found.ring,
    priority: found.priority ?? credential.priority,
    weight: found.weight ?? credential.weight,
    dialect: upstream.dialectOf(model),
    row: rowOf(usable.models, credential.kind, { upstream: model, base: baseModel }),
    group: credential.fallbackGroup,
    condition,
    modelCondition: condition.model(model),
    isBlocked: usable.blocked.has(found.name) || usable.blocked.has(model),
  }
}
