import type { Alias } from '../model.ts'
import type { Connection } from './serves.ts'

/** A connection that serves a name. */
export interface Found {
  readonly connection: Connection
  readonly alias: Alias | undefined
  /** 0 for members of an alias. */
  readonly ring: 0 | 1 | 2 | 3 | 4
  /** The name as the credential's mapping takes it. */
  readonly name: string
  /** Where they are not the credential's. */
  readonly priority?: number | undefined
  readonly weight?: number | undefined
}

/** The aliases a user sees, by name: a private one hides the shared one, a disabled one is not there. Contract: gateway.md 2.2. */
export function visibleAliases(aliases: readonly Alias[], userId: number | undefined): ReadonlyMap<string, Alias> {
  const enabled = aliases.filter((alias) => alias.enabled)
  const shared = enabled.filter(({ scope }) => scope === 'organization')
  const own = enabled.filter((alias) => alias.scope === 'user' && alias.user_id === userId)
  return new Map([...shared, ...own].map((alias) => [alias.name, alias]))
}

/** Its members that are at hand; what a credential may be asked for counts by the member's own model. */
export const membersOf = (alias: Alias, connections: readonly Connection[]): Found[] =>
  alias.members.flatMap((member, i) => {
    const connection = connections.find(({ credential }) => credential.id === member.credential_id)
    if (!connection) return []
    const { credential, deployment } = connection
    return {
      connection,
      alias,
      ring: 0,
      name: member.model ?? credential.defaultModel ?? deployment ?? alias.name,
      priority: alias.strategy === 'ordered' ? i : member.priority,
      weight: member.weight === undefined ? undefined : Math.round(member.weight * 1000),
    }
  })
