import type { Clock } from '../base/clock.ts'
import { toTimestamp } from '../base/clock.ts'
import type { Database } from '../database/database.ts'
import type { Logger } from '../platform/ports.ts'
import type { States } from './state/states.ts'
import { Ticker } from './state/ticker.ts'
import { raiseRevision } from './store/revisions.ts'
import { saveHealth, type HealthFacts } from './store/health.ts'

/** What calls found wrong with a credential. */
export interface CredentialFault {
  code: string
  status?: number | undefined
  /** Redacted. */
  message: string
}

const TICK_MS = 500
const MESSAGE_MAX = 500

/** What calls find out about credentials and all processes must know, written off the request path. Contract: gateway.md 4.5. */
export class CredentialHealth {
  readonly #database: Database
  readonly #states: States
  readonly #clock: Clock
  readonly #ticker: Ticker
  #found = new Map<number, { organizationId: number; facts: HealthFacts }>()

  constructor(database: Database, states: States, clock: Clock, log: Logger) {
    this.#database = database
    this.#states = states
    this.#clock = clock
    this.#ticker = new Ticker('writing the health of credentials', TICK_MS, () => this.flush(), log)
  }

  start(): void {
    this.#ticker.start()
  }

  async close(): Promise<void> {
    await this.#ticker.close()
    await this.flush()
  }

  /** A call failed. */
  failed(organizationId: number, credentialId: number, fault: CredentialFault): void {
    this.#note(organizationId, credentialId, { lastError: this.#lastError(fault) })
  }

  /** The provider takes it for no good, and it rests in every process. @param until epoch ms */
  rejected(organizationId: number, credentialId: number, until: number, fault: CredentialFault): void {
    this.#note(organizationId, credentialId, { rejectedUntil: until, lastError: this.#lastError(fault) })
  }

  /** A call of a credential that was rejected went well. */
  recovered(organizationId: number, credentialId: number): void {
    this.#note(organizationId, credentialId, { rejectedUntil: null, lastError: null })
  }

  /** Writes down what was found since the last time. */
  async flush(): Promise<void> {
    if (this.#found.size === 0) return
    const taken = this.#found
    this.#found = new Map()
    const changed = new Set<number>()
    try {
      await this.#database.transaction(async (tx) => {
        changed.clear()
        const inOrder = [...taken].sort(([a], [b]) => a - b)
        const isShared = ([, { facts }]: (typeof inOrder)[number]): boolean => facts.rejectedUntil !== undefined
        for (const [, { organizationId }] of inOrder.filter(isShared)) changed.add(organizationId)
        for (const organizationId of [...changed].sort((a, b) => a - b)) await raiseRevision(tx, organizationId)
        for (const [id, { organizationId, facts }] of inOrder) await saveHealth(tx, organizationId, id, facts)
      })
    } catch (error) {
      for (const [id, { organizationId, facts }] of taken) {
        this.#found.set(id, { organizationId, facts: { ...facts, ...this.#found.get(id)?.facts } })
      }
      throw error
    }
    for (const organizationId of changed) await this.#states.reload(organizationId)
  }

  #note(organizationId: number, credentialId: number, facts: HealthFacts): void {
    this.#found.set(credentialId, {
      organizationId,
      facts: { ...this.#found.get(credentialId)?.facts, ...facts },
    })
  }

  #lastError({ code, status, message }: CredentialFault) {
    const at = toTimestamp(this.#clock.now())
    return { code, ...(status !== undefined && { status }), message: message.slice(0, MESSAGE_MAX), at }
  }
}
