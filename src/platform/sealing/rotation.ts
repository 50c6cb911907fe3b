import type { Database } from '../../database/database.ts'
import type { Logger } from '../ports.ts'
import { takeLock } from '../store/locks.ts'
import {
  listSealedColumns,
  readSealedValues,
  replaceSealedValue,
  type SealedColumn,
  type SealedValue,
} from '../store/sealed.ts'
import { replaceKeyFile, withNewKey, type Keys } from './key-file.ts'
import { keyIdOf, SealError, type Sealer } from './sealer.ts'

export interface RotationReport {
  /** The current key. */
  current: string
  /** False when an earlier rotation was interrupted: it was ended with its own key. */
  added: boolean
  resealed: number
  /** Values that do not open, `table.column of row id`. They stay as they are. */
  failed: string[]
  pruned: string[]
}

const PAGE = 200

/**
 * Makes a new current key and seals every registered value anew with it. Interrupted, it is simply run again: what an
 * earlier run left is ended first, with the key that it had made. Contract: git-host.md 2.4.
 */
export class KeyRotation {
  readonly #database: Database
  readonly #sealer: Sealer
  readonly #log: Logger

  constructor(database: Database, sealer: Sealer, log: Logger) {
    this.#database = database
    this.#sealer = sealer
    this.#log = log
  }

  /** `prune` also drops the keys that no value is sealed with. */
  async rotate({ prune = false } = {}): Promise<RotationReport> {
    const leftOver = await this.#resealAll()
    const added = leftOver.resealed === 0
    if (added) await this.#changeKeys(withNewKey)
    const { resealed, failed } = added ? await this.#resealAll() : leftOver
    const pruned = prune ? await this.#prune() : []
    return { current: this.#sealer.keys().current, added, resealed, failed, pruned }
  }

  /** Again and again until there is nothing left: a server may just have sealed something with the key it knew. */
  async #resealAll(): Promise<{ resealed: number; failed: string[] }> {
    let resealed = 0
    for (;;) {
      const failed: string[] = []
      let changed = 0
      for await (const [column, values] of this.#pages()) {
        const stale = values.filter(({ value }) => keyIdOf(value) !== this.#sealer.keys().current)
        changed += await this.#reseal(column, stale, failed)
      }
      resealed += changed
      if (changed === 0) return { resealed, failed }
    }
  }

  async #reseal(column: SealedColumn, values: readonly SealedValue[], failed: string[]): Promise<number> {
    const sealed = values.flatMap((value) => {
      const place = placeOf(column, value)
      try {
        return [{ value, anew: this.#sealer.seal(this.#sealer.open(value.value, place), place) }]
      } catch (error) {
        if (!(error instanceof SealError)) throw error
        this.#log.warn({ reason: error.message }, 'a sealed value does not open')
        failed.push(`${place.table}.${place.column} of row ${place.rowId}`)
        return []
      }
    })
    if (sealed.length === 0) return 0
    return this.#database.transaction(async (tx) => {
      let changed = 0
      for (const { value, anew } of sealed) changed += await replaceSealedValue(tx, column, value, anew)
      return changed
    })
  }

  async #prune(): Promise<string[]> {
    const used = await this.#usedKeys()
    let dropped: Keys['keys'] = {}
    await this.#changeKeys(({ current, keys }) => {
      const isNeeded = ([id]: [string, Buffer]): boolean => id === current || used.has(id)
      dropped = Object.fromEntries(Object.entries(keys).filter((entry) => !isNeeded(entry)))
      return { current, keys: Object.fromEntries(Object.entries(keys).filter(isNeeded)) }
    })
    // A value that was on its way when the keys were counted brings its key back.
    const usedNow = await this.#usedKeys()
    const missed = Object.entries(dropped).filter(([id]) => usedNow.has(id))
    if (missed.length > 0)
      await this.#changeKeys(({ current, keys }) => ({ current, keys: { ...keys, ...Object.fromEntries(missed) } }))
    return Object.keys(dropped).filter((id) => !usedNow.has(id))
  }

  async #usedKeys(): Promise<Set<string>> {
    const used = new Set<string>()
    for await (const [, values] of this.#pages()) for (const { value } of values) used.add(keyIdOf(value))
    return used
  }

  async *#pages(): AsyncGenerator<[SealedColumn, SealedValue[]]> {
    for (const column of await listSealedColumns(this.#database)) {
      let values: SealedValue[]
      for (let after: string | number | undefined; ; after = values.at(-1)?.row_id) {
        values = await readSealedValues(this.#database, column, after, PAGE)
        if (values.length > 0) yield [column, values]
        if (values.length < PAGE) break
      }
    }
  }

  /** One process at a time: two that read the file together would lose a key. */
  async #changeKeys(change: (keys: Keys) => Keys): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await takeLock(tx, 'platform key file')
      replaceKeyFile(this.#sealer.path, change(this.#sealer.keys()))
    })
  }
}

const placeOf = ({ table_name, column_name }: SealedColumn, { organization_id, row_id }: SealedValue) => ({
  organizationId: organization_id,
  table: table_name,
  rowId: row_id,
  column: column_name,
})
