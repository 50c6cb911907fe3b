import { toTimestamp } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { version } from '../base/version.ts'
import { isDiskFull } from '../database/full-disk.ts'
import { endBefore } from '../http/deadline.ts'
import { probeStore, readPools } from './store/health.ts'
import type { KernelStore } from './store/store.ts'

/** Whether the kernel works. Contract: kernel-1.md 2. */

export interface HealthCheck {
  status: 'ok' | 'degraded' | 'down' | 'not_configured'
  detail?: string
  latencyMs?: number
}

/** Of parts that others wire. They look at what is here, and call nobody. */
export type HealthChecks = Partial<Record<'model' | 'artifacts' | 'registry', () => Promise<HealthCheck>>>

export interface HealthReport {
  status: 'ok' | 'degraded' | 'down'
  /** Only when it is down. */
  error?: string
  version: string
  startedAt: string
  checks: Record<'store' | 'workers' | keyof HealthChecks, HealthCheck>
}

const CHECK_MS = 2000
const CACHED_MS = 1000
/** A pool that was not seen for so long is gone. */
const SILENT_MS = 30_000
/** Of what a write found out, for as long. */
const FULL_MS = 10_000
export const DISK_FULL = 'the disk of the store is full: make room, and try again'
const NONE: HealthCheck = { status: 'not_configured' }

export class Health {
  readonly #store: KernelStore
  readonly #checks: HealthChecks
  readonly #startedAt: string
  #last: { at: number; report: Promise<HealthReport> } | undefined
  #fullAt = -Infinity

  constructor(store: KernelStore, checks: HealthChecks) {
    this.#store = store
    this.#checks = checks
    this.#startedAt = toTimestamp(store.now())
  }

  /** As of this second. Never rejects. */
  read(): Promise<HealthReport> {
    const at = this.#store.now()
    // Also when the clock was set back.
    if (!this.#last || Math.abs(at - this.#last.at) >= CACHED_MS) this.#last = { at, report: this.#look() }
    return this.#last.report
  }

  /** A write found no room: what a probe writes may still find some. */
  sawFullDisk(): void {
    this.#fullAt = this.#store.now()
    this.#last = undefined
  }

  async #look(): Promise<HealthReport> {
    const { model, artifacts, registry } = this.#checks
    const [store, workers, ...parts] = await Promise.all([
      timed(() => this.#probe()),
      timed(() => this.#workers()),
      model ? timed(model) : NONE,
      artifacts ? timed(artifacts) : NONE,
      registry ? timed(registry) : NONE,
    ])
    const checks = { store, workers, model: parts[0], artifacts: parts[1], registry: parts[2] }
    const isBad = Object.values(checks).some(({ status }) => status === 'degraded' || status === 'down')
    const about = { version, startedAt: this.#startedAt, checks }
    if (store.status === 'down')
      return { status: 'down', error: store.detail === DISK_FULL ? DISK_FULL : 'the store does not answer', ...about }
    return { status: isBad ? 'degraded' : 'ok', ...about }
  }

  /** @throws when the store does not read or write */
  async #probe(): Promise<HealthCheck> {
    await probeStore(this.#store.database).catch((error: unknown) => {
      throw isDiskFull(error) ? new Error(DISK_FULL) : error
    })
    if (this.#store.now() - this.#fullAt < FULL_MS) throw new Error(DISK_FULL)
    return { status: 'ok' }
  }

  async #workers(): Promise<HealthCheck> {
    const { seen, silent } = await readPools(this.#store.database, this.#store.now() - SILENT_MS)
    const [first] = silent
    if (!first) return seen === 0 ? NONE : { status: 'ok' }
    const { scope, kind } = first
    const more = silent.length > 1 ? ` and ${silent.length - 1} more` : ''
    return { status: 'degraded', detail: `no ${kind} workers of ${scope.kind}:${scope.id}${more} seen for 30 s` }
  }
}

/** What the check says and how long it took; one that fails, or takes too long, is down. */
async function timed(check: () => Promise<HealthCheck>): Promise<HealthCheck> {
  const start = performance.now()
  const late = (): Error => new Error(`no answer within ${CHECK_MS} ms`)
  const found = await endBefore(AbortSignal.timeout(CHECK_MS), check(), late).catch((error: unknown): HealthCheck => ({
    status: 'down',
    detail: errorText(error),
  }))
  return found.status === 'not_configured' ? found : { ...found, latencyMs: Math.round(performance.now() - start) }
}
