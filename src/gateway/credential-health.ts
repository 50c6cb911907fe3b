import { clip } from '../base/clip.ts'
import type { Clock } from '../base/clock.ts'
import { toTimestamp } from '../base/clock.ts'
import type { Database } from '../database/database.ts'
import type { LastError } from './model.ts'
import type { Logger } from '../platform/ports.ts'
import type { OpenCredential } from './state/organization-state.ts'
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

/** What is wrong with a credential whose secrets do not open: nobody is called with it. Contract: gateway.md 10.1. */
export const UNREADABLE = {
  code: 'secret_unreadable',
  message:
    'a saved secret does not open with the key file of this server: enter it anew, or start the server with the key file that it was sealed with',
} satisfies CredentialFault

/** Which credential, as it was when it was called. */
type Called = Pick<OpenCredential, 'organizationId' | 'id' | 'version'>

interface Found {
  readonly called: Called
  readonly facts: HealthFacts
}

/** Of one version all that was found, the later above the earlier; of another only the later. */
const merged = (earlier: Found | undefined, later: Found): Found =>
  earlier?.called.version === later.called.version ? { ...later, facts: { ...earlier.facts, ...later.facts } } : later

/** A fault as the credential shows it. @param at epoch ms */
export const lastErrorOf = ({ code, status, message }: CredentialFault, at: number): LastError => ({
  code,
  ...(status !== undefined && { status }),
  message: clip(message, MESSAGE_MAX),
  at: toTimestamp(at),
})

const TICK_MS = 500
const MESSAGE_MAX = 500

/** What calls find out about credentials and all processes must know, written off the request path. Contract: gateway.md 4.5. */
export class CredentialHealth {
  readonly #database: Database
  readonly #states: States
  readonly #clock: Clock
  readonly #ticker: Ticker
  #found = new Map<number, Found>()
  /** What is being written; it is found again where that fails. */
  #taken = new Map<number, Found>()

  constructor(database: Database, states: States, clock: Clock, log: Logger) {
    this.#database = database
    this.#states = states
    this.#clock = clock
    this.#ticker = new Ticker('writing the health of credentials', TICK_MS, () => this.flush(), log)
  }

  start(): void {
    this.#ticker.start()
  }

  close(): Promise<void> {
    return this.#ticker.finish()
  }

  /** A call failed. */
  failed(called: Called, fault: CredentialFault): void {
    this.#note(called, { lastError: lastErrorOf(fault, this.#clock.now()) })
  }

  /** The provider takes it for no good, and it rests in every process. @param until epoch ms */
  rejected(called: Called, until: number, fault: CredentialFault): void {
    this.#note(called, { rejectedUntil: until, lastError: lastErrorOf(fault, this.#clock.now()) })
  }

  /** Somebody has mended or tried it: what was found before and is not written yet says nothing any more. */
  forget(credentialId: number): void {
    this.#found.delete(credentialId)
    this.#taken.delete(credentialId)
  }

  /** Writes down what was found since the last time. */
  async flush(): Promise<void> {
    if (this.#found.size === 0) return
    this.#taken = this.#found
    this.#found = new Map()
    const changed = new Set<number>()
    try {
      await this.#database.transaction(async (tx) => {
        changed.clear()
        const inOrder = [...this.#taken].sort(([a], [b]) => a - b)
        const isShared = ([, { facts }]: (typeof inOrder)[number]): boolean => facts.rejectedUntil !== undefined
        for (const [, { called }] of inOrder.filter(isShared)) changed.add(called.organizationId)
        for (const organizationId of [...changed].sort((a, b) => a - b)) await raiseRevision(tx, organizationId)
        for (const [id, { called, facts }] of inOrder) {
          // It may have been forgotten while this waited.
          if (this.#taken.has(id)) await saveHealth(tx, called.organizationId, id, facts, called.version)
        }
      })
    } catch (error) {
      for (const [id, old] of this.#taken) {
        const newer = this.#found.get(id)
        this.#found.set(id, newer ? merged(old, newer) : old)
      }
      throw error
    }
    for (const organizationId of changed) await this.#states.reload(organizationId)
  }

  #note(called: Called, facts: HealthFacts): void {
    this.#found.set(called.id, merged(this.#found.get(called.id), { called, facts }))
  }
}
