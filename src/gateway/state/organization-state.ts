import type { CredentialRow } from '../store/credentials.ts'
import type { Alias, Budget, Kind, Limits, Settings, Timeouts } from '../model.ts'

/** A credential as requests use it: its secrets opened. It never leaves the process. */
export interface OpenCredential {
  readonly id: number
  readonly organizationId: number
  /** Of a private one. */
  readonly userId: number | undefined
  readonly version: number
  readonly kind: Kind
  readonly name: string
  readonly defaultModel: string | undefined
  /** Thousandths. */
  readonly weight: number
  readonly priority: number
  readonly fallbackGroup: string | undefined
  readonly enabled: boolean
  readonly baseUrl: string | undefined
  /** What is no secret, as in gateway.md 2.1, defaults filled in. */
  readonly config: Readonly<Record<string, unknown>>
  /** `api_key`, `secret_access_key`, `session_token`, `service_account`. */
  readonly secrets: Readonly<Record<string, string>>
  readonly customHeaders: Readonly<Record<string, string>>
  readonly modelMapping: ReadonlyMap<string, string>
  readonly allowedModels: readonly string[]
  readonly limits: Limits
  readonly timeouts: Timeouts
  /** A secret did not open: it is there, and rejected. */
  readonly isBroken: boolean
  /** `rejected` until then, as some process found (epoch ms). */
  readonly rejectedUntil: number | undefined
  /** What its last test found, as it was stored when this was read. */
  readonly tested?: Pick<CredentialRow, 'checked_at' | 'last_error'>
}

export interface OpenKey {
  readonly id: number
  readonly organizationId: number
  readonly name: string
  /** SHA-256 of the token, hex; while the grace of rotations lasts there are more. */
  readonly hashes: readonly { readonly hash: string; readonly until?: number }[]
  readonly userId: number | undefined
  readonly allowedModels: readonly string[]
  readonly allowedCredentials: readonly number[]
  readonly budget: Budget | undefined
  readonly limits: Limits
  readonly maxOutputTokens: number | undefined
  readonly expiresAt: number | undefined
  readonly enabled: boolean
}

/** All that requests of an organization need; replaced as a whole when something changes. Contract: gateway.md 4.1. */
export interface OrganizationState {
  readonly id: number
  readonly revision: number
  readonly settings: Settings
  readonly credentials: readonly OpenCredential[]
  readonly aliases: readonly Alias[]
  readonly keys: readonly OpenKey[]
  /** Active ones. */
  readonly users: ReadonlyMap<number, { readonly role: 'admin' | 'member' }>
  readonly metricsTokenHash: string | undefined
}

/** Who makes an inference call. */
export interface GatewayCaller {
  readonly state: OrganizationState
  /** Of the session, or whom the key is for. */
  readonly userId: number | undefined
  /** Absent with a session. */
  readonly key: OpenKey | undefined
}
