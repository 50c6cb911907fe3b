import { probe } from '../database/probe.ts'
import type { Seams } from './seams.ts'

export interface Readiness {
  ok: boolean
  status: 'ready' | 'degraded'
  /** `ok` or `down: <reason>`. */
  adapter: { primary: string; vector: string; ledger: string }
}

/** Asks the stores that no request can do without; graph and content are not probed. Contract: memory.md 3.7. */
export class Health {
  readonly #seams: Seams

  constructor(seams: Seams) {
    this.#seams = seams
  }

  async readiness(): Promise<Readiness> {
    const { metadata, vector: vectors, ledger: entries, ledgerFile } = this.#seams
    const [primary, vector, ledger] = await Promise.all([metadata, vectors, entries ?? ledgerFile].map(probe))
    const adapter = { primary: primary ?? '', vector: vector ?? '', ledger: ledger ?? '' }
    const ok = Object.values(adapter).every((state) => state === 'ok')
    return { ok, status: ok ? 'ready' : 'degraded', adapter }
  }
}
