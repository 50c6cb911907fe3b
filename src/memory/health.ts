import { errorText } from '../base/errors.ts'
import type { Database } from '../database/database.ts'
import type { Seams } from './seams.ts'

const PROBE_MS = 2000

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

async function probe(store: Pick<Database, 'ping'> | undefined): Promise<string> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${PROBE_MS} ms`)), PROBE_MS)
  })
  try {
    await Promise.race([store?.ping(), late])
    return 'ok'
  } catch (error) {
    return `down: ${withoutCredentials(errorText(error))}`
  } finally {
    clearTimeout(timer)
  }
}

/** A driver may quote its URL. */
const withoutCredentials = (text: string): string => text.replace(/:\/\/[^@\s/]*@/g, '://***@')
