import type { Clock } from '../base/clock.ts'
import type { Logger } from '../platform/ports.ts'
import type { Platform } from '../platform/service.ts'
import { Aliases } from './aliases.ts'
import { Audit } from './audit.ts'
import { CredentialHealth } from './credential-health.ts'
import { CredentialTrial } from './credential-trial.ts'
import { Credentials } from './credentials.ts'
import { Keys } from './keys.ts'
import { MetricsTokens } from './metrics-token.ts'
import type { LiveHealth, SpentOf, TestCredential } from './ports.ts'
import { SettingsService } from './settings.ts'
import { States } from './state/states.ts'

export interface ManagementParts {
  platform: Platform
  clock: Clock
  log: Logger
  /** `gateway.allowed_hosts` */
  allowedHosts: readonly string[]
  /** `gateway.runtime_roles` */
  runtimeRoles: readonly (number | '*')[]
  /** `gateway.max_request_bytes` */
  maxRequestBytes: number
  live: LiveHealth
  spentOf: SpentOf
  testCredential: TestCredential
}

/** What people manage, and what processes hold of it in memory. */
export class GatewayManagement {
  readonly states: States
  readonly audit: Audit
  readonly health: CredentialHealth
  readonly credentials: Credentials
  readonly trial: CredentialTrial
  readonly aliases: Aliases
  readonly keys: Keys
  readonly settings: SettingsService
  readonly metricsTokens: MetricsTokens

  constructor(parts: ManagementParts) {
    const { clock, log, spentOf, maxRequestBytes } = parts
    const { database, sealer, organizations } = parts.platform
    const isInitialized = (): Promise<boolean> => organizations.isInitialized()
    this.states = new States({ database, sealer, clock, log, isInitialized })
    this.audit = new Audit(database, clock, log, isInitialized)
    this.health = new CredentialHealth(database, this.states, clock, log)
    const common = { database, states: this.states, audit: this.audit, clock }
    const credentialParts = { ...parts, ...common, sealer, health: this.health }
    this.credentials = new Credentials(credentialParts)
    this.trial = new CredentialTrial(credentialParts, this.credentials, parts.testCredential)
    this.aliases = new Aliases(common)
    this.keys = new Keys({ ...common, spentOf })
    this.settings = new SettingsService({ ...common, maxRequestBytes })
    this.metricsTokens = new MetricsTokens(common)
  }

  /** Reads the state of every organization. @throws when the database cannot be read */
  async start(): Promise<void> {
    await this.states.start()
    this.audit.start()
    this.health.start()
  }

  /** Writes what is to be written. */
  async close(): Promise<void> {
    await this.states.close()
    await this.health.close()
    await this.audit.close()
  }
}
