import type { ModelTable } from '../cost/model-table.ts'
import { KINDS, type Kind } from '../model.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import type { Found } from './aliases.ts'
import type { CredentialCondition } from './condition.ts'
import { Names } from './names.ts'

/** Kinds that take names nobody told us of. */
const OPEN_KINDS: ReadonlySet<Kind> = new Set(['openai-compatible', 'ollama', 'azure-openai', 'bedrock', 'vertex'])

/** A credential as names are resolved with it. */
export interface Connection {
  readonly credential: OpenCredential
  readonly condition: CredentialCondition
  readonly allowed: Names
  /** Azure's. */
  readonly deployment: string | undefined
  readonly baseModel: string | undefined
}

export function connect(credential: OpenCredential, condition: CredentialCondition): Connection {
  const { deployment, base_model: base } = credential.config
  return {
    credential,
    condition,
    allowed: new Names(credential.allowedModels),
    deployment: typeof deployment === 'string' ? deployment : undefined,
    baseModel: typeof base === 'string' ? base : undefined,
  }
}

/** Whether the credential may be asked for the name at all. */
export const admits = ({ allowed }: Connection, name: string): boolean => allowed.isEmpty || allowed.has(name)

/** What the credential's provider calls it. Contract: gateway.md 4.2. */
export function upstreamName({ credential, deployment }: Connection, name: string): string {
  const { modelMapping, defaultModel } = credential
  return modelMapping.get(name) ?? (name === defaultModel ? deployment : undefined) ?? name
}

/** Whether a credential may be asked for a name, and its kind has what is to be done with it. */
export type Serves = (connection: Connection, name: string) => boolean

/**
 * Who serves a name: rings 1 to 3, else what its `<kind>/` says, else the kinds that take any name. Contract: gateway.md 4.2.
 * @param how.isPinned the provider is named by itself: any kind takes any name then
 */
export function serversOf(
  connections: readonly Connection[],
  name: string,
  table: ModelTable,
  how: { readonly serves: Serves; readonly isPinned: boolean },
): Found[] {
  const { serves, isPinned } = how
  const named = inRings(connections, name, table, serves)
  if (named.length > 0) return named
  const kind = KINDS.find((each) => name.startsWith(`${each}/`))
  const ofKind = connections.filter(({ credential }) => credential.kind === kind)
  if (kind !== undefined && (ofKind.length > 0 || !isPinned)) {
    const rest = name.slice(kind.length + 1)
    const served = inRings(ofKind, rest, table, serves)
    return served.length > 0 ? served : openTo(ofKind, rest, serves)
  }
  const open = isPinned ? connections : connections.filter(({ credential }) => OPEN_KINDS.has(credential.kind))
  return openTo(open, name, serves)
}

const inRings = (connections: readonly Connection[], name: string, table: ModelTable, serves: Serves): Found[] =>
  connections.flatMap((connection) => {
    const ring = ringOf(connection, name, table)
    return ring === undefined || !serves(connection, name) ? [] : [{ connection, alias: undefined, ring, name }]
  })

function ringOf(connection: Connection, name: string, table: ModelTable): 1 | 2 | 3 | undefined {
  const { credential, allowed, deployment } = connection
  if (name === '') return undefined
  if (credential.defaultModel === name) return 1
  if (!allowed.isEmpty || credential.modelMapping.has(name) || deployment === name) return 2
  return table.find(credential.kind, name) ? 3 : undefined
}

const openTo = (connections: readonly Connection[], name: string, serves: Serves): Found[] =>
  name === ''
    ? []
    : connections
        .filter((connection) => connection.allowed.isEmpty && serves(connection, name))
        .map((connection) => ({ connection, alias: undefined, ring: 4, name }))
