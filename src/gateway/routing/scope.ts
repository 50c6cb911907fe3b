import { GatewayError } from '../errors.ts'
import { SURFACES, type Kind, type Surface } from '../model.ts'
import { compileRoute, isServed, mayUse, type Usable } from './compile.ts'
import { nearHint, quoted } from './names.ts'
import { Recent } from './recent.ts'
import type { Route } from './route.ts'
import { admits, type Connection, upstreamName } from './serves.ts'

/** Routes that are remembered for each surface. */
const ROUTES = 1000

/** A name that a caller may use, for lists of models. */
export interface ModelEntry {
  readonly id: string
  readonly owned_by: Kind | 'alias'
  /** Epoch seconds: of an alias's making; of the model table for other names. */
  readonly created: number
}

/** The route table of one sort of caller: the same user, the same restrictions of a key. Contract: gateway.md 4.1. */
export class Scope {
  readonly #usable: Usable
  readonly #routes: Readonly<Record<Surface, Recent<string, Route>>> = {
    chat: new Recent(ROUTES),
    messages: new Recent(ROUTES),
    responses: new Recent(ROUTES),
    embeddings: new Recent(ROUTES),
  }
  readonly #pinned = new Recent<string, Route>(ROUTES)
  #models: readonly ModelEntry[] | undefined

  constructor(usable: Usable) {
    this.#usable = usable
  }

  /** @throws GatewayError 403 `model_blocked`, `model_not_allowed`, 404 `model_not_found` */
  route(name: string, surface: Surface): Route {
    const known = this.#routes[surface].get(name)
    if (known) return known
    this.#check(name)
    const made = compileRoute(this.#usable, name, surface)
    if (made.all.length === 0) throw made.blocked.length > 0 ? blockedError(name) : this.#absence(name, surface)
    this.#routes[surface].set(name, made)
    this.#usable.onKept(made.all.length)
    return made
  }

  /**
   * The way through one credential alone. @param pin its id or name
   * @throws GatewayError 403 `model_blocked`, `model_not_allowed`, `credential_not_allowed`
   */
  pinned(name: string, surface: Surface, pin: string): Route {
    const key = JSON.stringify([surface, pin, name])
    const known = this.#pinned.get(key)
    if (known) return known
    this.#check(name)
    const connection = this.#connectionOf(pin)
    const made = connection && compileRoute(this.#usable, name, surface, connection)
    if (made && made.blocked.length > 0 && made.all.length === 0) throw blockedError(name)
    if (!made || made.all.length === 0) {
      throw new GatewayError('credential_not_allowed', `The credential ${quoted(pin)} cannot serve this call`, {
        param: 'x-mem-credential',
      })
    }
    this.#pinned.set(key, made)
    this.#usable.onKept(made.all.length)
    return made
  }

  /** Every name that may be used, in order. Contract: gateway.md 3.2 */
  models(): readonly ModelEntry[] {
    this.#models ??= listModels(this.#usable)
    return this.#models
  }

  #check(name: string): void {
    if (this.#usable.blocked.has(name)) throw blockedError(name)
    if (!mayUse(this.#usable, name)) {
      throw new GatewayError('model_not_allowed', `This key may not use the model ${quoted(name)}`, { param: 'model' })
    }
  }

  /** By id, else by name, a private one before a shared one. */
  #connectionOf(pin: string): Connection | undefined {
    const { connections } = this.#usable
    const byId = connections.find(({ credential }) => `${credential.id}` === pin)
    if (byId) return byId
    const named = connections.filter(({ credential }) => credential.name.toLowerCase() === pin.toLowerCase())
    return named.find(({ credential }) => credential.userId !== undefined) ?? named[0]
  }

  #absence(name: string, surface: Surface): GatewayError {
    const names = this.models().flatMap(({ id }) => (isServed(this.#usable, id, surface) ? id : []))
    const reason = this.#usable.aliases.has(name)
      ? `No member of the alias ${quoted(name)} serves ${surface}: see that their credentials are enabled and allow what they are asked for`
      : `No credential serves the model ${quoted(name)} for ${surface}`
    return new GatewayError('model_not_found', reason + nearHint(name, names), { param: 'model' })
  }
}

const blockedError = (name: string): GatewayError =>
  new GatewayError('model_blocked', `The model ${quoted(name)} is blocked in this organization`, { param: 'model' })

function listModels(usable: Usable): ModelEntry[] {
  const found = new Map<string, ModelEntry>()
  const ofTable = seconds(usable.models.version.slice(0, 10))
  for (const { name, created_at: at } of usable.aliases.values()) {
    if (!mayUse(usable, name) || !SURFACES.some((surface) => isServed(usable, name, surface))) continue
    found.set(name, { id: name, owned_by: 'alias', created: seconds(at) })
  }
  for (const connection of usable.connections) {
    for (const name of namesOf(usable, connection)) {
      if (usable.aliases.has(name) || found.has(name) || !servesName(usable, connection, name)) continue
      found.set(name, { id: name, owned_by: connection.credential.kind, created: ofTable })
    }
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

const seconds = (date: string): number => Math.floor((Date.parse(date) || 0) / 1000)

function namesOf({ models }: Usable, { credential, allowed }: Connection): string[] {
  const { defaultModel, modelMapping, kind } = credential
  const own = defaultModel === undefined ? [] : [defaultModel]
  return [...own, ...modelMapping.keys(), ...allowed.exact, ...models.names(kind)]
}

function servesName(usable: Usable, connection: Connection, name: string): boolean {
  if (!mayUse(usable, name) || !admits(connection, name)) return false
  const model = upstreamName(connection, name)
  const upstream = usable.upstreamOf(connection)
  return !usable.blocked.has(model) && SURFACES.some((surface) => upstream.serves(surface, model))
}
