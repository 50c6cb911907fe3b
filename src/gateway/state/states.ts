import { timingSafeEqual } from 'node:crypto'
import { eachBounded } from '../../base/bounded.ts'
import type { Clock } from '../../base/clock.ts'
import { KeyedMutex } from '../../base/keyed-mutex.ts'
import type { Database, Queryable } from '../../database/database.ts'
import type { Sealer } from '../../platform/sealing/sealer.ts'
import type { Logger } from '../../platform/ports.ts'
import { raiseRevision, readRevisions } from '../store/revisions.ts'
import { loadState } from './load.ts'
import type { OpenKey, OrganizationState } from './organization-state.ts'
import { Ticker } from './ticker.ts'

export interface StatesParts {
  database: Database
  sealer: Sealer
  clock: Clock
  log: Logger
  /** False before there is a store to read. */
  isInitialized: () => Promise<boolean>
}

type Listener = (state: OrganizationState) => void

/** Other processes must see a change within 2 s. */
const POLL_MS = 1000
const LOADS_AT_ONCE = 4

/**
 * What every organization's calls need, in memory: a call reads no database. A change here holds for what comes after its
 * answer; changes of other processes are seen within 2 s. While the database is away the last state stays. Contract:
 * gateway.md 4.1.
 */
export class States {
  readonly #parts: StatesParts
  readonly #poller: Ticker
  readonly #states = new Map<number, OrganizationState>()
  readonly #keys = new Map<string, { organizationId: number; key: OpenKey; until: number | undefined }>()
  readonly #metricsTokens = new Map<string, number>()
  readonly #listeners = new Set<Listener>()
  readonly #turns = new KeyedMutex()
  readonly #queued = new Map<number, Promise<void>>()

  constructor(parts: StatesParts) {
    this.#parts = parts
    this.#poller = new Ticker('reading the state of the gateway', POLL_MS, () => this.poll(), parts.log)
  }

  /** Reads everything, then goes on looking for changes. @throws when the database cannot be read */
  async start(): Promise<void> {
    await this.poll()
    this.#poller.start()
  }

  close(): Promise<void> {
    return this.#poller.close()
  }

  get(organizationId: number): OrganizationState | undefined {
    return this.#states.get(organizationId)
  }

  all(): IterableIterator<OrganizationState> {
    return this.#states.values()
  }

  /** The key of a token that is good now. @param tokenHash SHA-256 of the token, hex */
  findKey(tokenHash: string): { state: OrganizationState; key: OpenKey } | undefined {
    const found = this.#keys.get(tokenHash)
    const state = found && this.#states.get(found.organizationId)
    if (!state || !found.key.hashes.some(({ hash }) => isSame(hash, tokenHash))) return undefined
    const now = this.#parts.clock.now()
    const { key, until = Infinity } = found
    if (!key.enabled || now >= until || now >= (key.expiresAt ?? Infinity)) return undefined
    return { state, key }
  }

  /** @param tokenHash SHA-256 of the token, hex */
  byMetricsToken(tokenHash: string): OrganizationState | undefined {
    const id = this.#metricsTokens.get(tokenHash)
    const state = id === undefined ? undefined : this.#states.get(id)
    return state?.metricsTokenHash !== undefined && isSame(state.metricsTokenHash, tokenHash) ? state : undefined
  }

  /** Is told of every state that takes the place of another, and of new ones. */
  onChange(listener: Listener): void {
    this.#listeners.add(listener)
  }

  /** Changes what calls must know of, in one transaction; it holds for whoever comes after. */
  async change<T>(organizationId: number, work: (tx: Queryable) => Promise<T>): Promise<T> {
    const result = await this.#parts.database.transaction(async (tx) => {
      await raiseRevision(tx, organizationId)
      return work(tx)
    })
    await this.reload(organizationId)
    return result
  }

  /** Reads the state of an organization anew: what was committed before the call is in it afterwards. */
  reload(organizationId: number): Promise<void> {
    const queued = this.#queued.get(organizationId)
    if (queued) return queued
    const load = this.#turns.run(String(organizationId), () => {
      this.#queued.delete(organizationId)
      return this.#load(organizationId)
    })
    this.#queued.set(organizationId, load)
    return load
  }

  /** Reads anew what other processes changed: one cheap query when there is nothing. */
  async poll(): Promise<void> {
    if (!(await this.#parts.isInitialized())) return
    const revisions = await readRevisions(this.#parts.database)
    const changed = revisions.filter(({ id, revision }) => this.#states.get(id)?.revision !== revision)
    const failures: unknown[] = []
    // One organization that cannot be read must not keep the others from being read.
    await eachBounded(changed, LOADS_AT_ONCE, ({ id }) => this.reload(id).catch((error) => failures.push(error)))
    if (failures.length > 0) throw failures[0]
  }

  async #load(organizationId: number): Promise<void> {
    const { database, sealer } = this.#parts
    const state = await database.snapshot((view) => loadState(view, sealer, organizationId))
    if (!state) return
    const old = this.#states.get(organizationId)
    this.#forget(old)
    this.#states.set(organizationId, state)
    for (const key of state.keys) {
      for (const { hash, until } of key.hashes) this.#keys.set(hash, { organizationId, key, until })
    }
    if (state.metricsTokenHash !== undefined) this.#metricsTokens.set(state.metricsTokenHash, organizationId)
    this.#reportBroken(state, old)
    for (const listener of this.#listeners) listener(state)
  }

  #forget(old: OrganizationState | undefined): void {
    for (const { hashes } of old?.keys ?? []) for (const { hash } of hashes) this.#keys.delete(hash)
    if (old?.metricsTokenHash !== undefined) this.#metricsTokens.delete(old.metricsTokenHash)
  }

  #reportBroken({ id: organization, credentials }: OrganizationState, old: OrganizationState | undefined): void {
    const known = new Set(old?.credentials.filter(({ isBroken }) => isBroken).map(({ id }) => id))
    for (const { id: credential, isBroken } of credentials) {
      if (!isBroken || known.has(credential)) continue
      this.#parts.log.error({ organization, credential }, 'a secret of a credential does not open: enter it anew')
    }
  }
}

const isSame = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
