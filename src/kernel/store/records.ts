import type { Param, Queryable, Row } from '../../database/database.ts'
import { toTimestamp } from '../../base/clock.ts'
import { conflict, expectRevision, notFound } from '../errors.ts'
import type { Recorded, Scope } from '../model/fields.ts'
import { wellFormed, writeRow } from './rows.ts'
import { scopeKey } from './scope-key.ts'
import { forUpdate, type Conditions } from './sql.ts'

/** How a family of records lies in its table: what is searched for in columns, the whole as JSON. */
export interface Family<T extends Recorded> {
  table: string
  /** For messages. */
  noun: string
  /** Besides scope, id and revision. */
  columns(record: T): Record<string, Param>
  /** Those that never change: writing them again would cost all their indexes. */
  fixed?: readonly string[]
  /** What of it is kept as body, where others than itself hold a part. */
  body?(record: T): object
  /** Joins what others hold; `t` is the table. */
  joined?: { columns: string; join: string; read(row: Row): Partial<T> }
}

interface BodyRow extends Row {
  body: string
}

export const toRecord = <T extends Recorded>(family: Family<T>, row: BodyRow): T => {
  const record: T = JSON.parse(row.body)
  return family.joined ? { ...record, ...family.joined.read(row) } : record
}

/** `SELECT` with these columns more, up to its `WHERE`. */
export const selectFrom = <T extends Recorded>({ table, joined }: Family<T>, more: readonly string[] = []): string =>
  `SELECT ${['t.body', ...more.map((column) => `t.${column}`), ...(joined ? [joined.columns] : [])].join(', ')}
     FROM ${table} t ${joined?.join ?? ''}`

const bodyOf = <T extends Recorded>(family: Family<T>, record: T): string =>
  JSON.stringify(family.body?.(record) ?? record)

/** @throws conflict when the id is taken */
export async function insertRecord<T extends Recorded>(tx: Queryable, family: Family<T>, record: T): Promise<T> {
  const columns = {
    scope: scopeKey(record.scope),
    id: record.id,
    revision: record.revision,
    ...family.columns(record),
    body: bodyOf(family, record),
  }
  const names = Object.keys(columns)
  const inserted = await tx.run(
    `INSERT INTO ${family.table} (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})
     ON CONFLICT (scope, id) DO NOTHING`,
    Object.values(columns),
  )
  if (inserted === 0) throw conflict(`${family.noun} ${record.id} exists already`)
  return record
}

/**
 * Writes a record that was read at `record.revision` as its next revision, and gives that.
 * @throws conflict when another write came between
 */
export async function saveRecord<T extends Recorded>(
  tx: Queryable,
  family: Family<T>,
  record: T,
  now: number,
): Promise<T> {
  const next: T = { ...record, revision: record.revision + 1, updatedAt: toTimestamp(now) }
  const columns = family.columns(next)
  for (const name of family.fixed ?? []) delete columns[name]
  if (!(await updateRecord(tx, family, next, columns))) {
    const current = await readRecord(tx, family, record.scope, record.id)
    expectRevision(record.revision, current.revision)
  }
  return next
}

function updateRecord<T extends Recorded>(
  tx: Queryable,
  family: Family<T>,
  next: T,
  columns: Record<string, Param>,
): Promise<boolean> {
  const { table } = family
  const row: Record<string, unknown> & { id: string } = { id: next.id, revision: next.revision }
  for (const [name, value] of Object.entries(columns)) row[name] = wellFormed(value)
  row['body'] = family.body?.(next) ?? next
  const names = Object.keys(row).slice(1)
  return writeRow(
    tx,
    { scope: scopeKey(next.scope), table, row },
    (v, from) => `UPDATE ${table} SET ${names.map((name) => `${name} = ${v[name]}`).join(', ')} ${from}
     WHERE ${table}.scope = $1 AND ${table}.id = ${v['id']} AND ${table}.revision = ${v['revision']} - 1`,
  )
}

/** By the key of its table; undefined where the scope has none. */
export async function findRecord<T extends Recorded>(
  db: Queryable,
  family: Family<T>,
  scope: Scope,
  id: string,
): Promise<T | undefined> {
  const row = await db.get<BodyRow>(`${selectFrom(family)} WHERE t.scope = $1 AND t.id = $2`, [scopeKey(scope), id])
  return row && toRecord(family, row)
}

/** @throws not_found */
export async function readRecord<T extends Recorded>(
  db: Queryable,
  family: Family<T>,
  scope: Scope,
  id: string,
): Promise<T> {
  const record = await findRecord(db, family, scope, id)
  if (!record) throw notFound(family.noun, id)
  return record
}

/** Reads what this transaction will change: others wait. @throws not_found */
export async function lockRecord<T extends Recorded>(
  tx: Queryable,
  family: Family<T>,
  scope: Scope,
  id: string,
): Promise<T> {
  const row = await tx.get<BodyRow>(`${selectFrom(family)} WHERE t.scope = $1 AND t.id = $2${forUpdate(tx, 'OF t')}`, [
    scopeKey(scope),
    id,
  ])
  if (!row) throw notFound(family.noun, id)
  return toRecord(family, row)
}

/** Columns that a list is sorted by, all up or all down; the last tells rows apart. */
export interface Order {
  columns: readonly string[]
  descending?: boolean
}

export type Key = readonly (string | number)[]

/** Where a page begins: so many rows on, or behind the row with this key. */
export interface PageRequest {
  limit: number
  offset?: number
  after?: Key
}

/** `next` is the key of the last row, when there are more. */
export interface RecordPage<T> {
  items: T[]
  next?: Key
}

/** One page, which is shorter where its records are very long; walking by `after` neither drops nor repeats rows whose key stays. */
export async function listRecords<T extends Recorded>(
  db: Queryable,
  family: Family<T>,
  where: Conditions,
  order: Order,
  { limit, offset = 0, after }: PageRequest,
): Promise<RecordPage<T>> {
  const columns = order.columns.map((column) => `t.${column}`)
  const down = order.descending === true
  if (after) {
    where.and(`(${columns.join(', ')}) ${down ? '<' : '>'} (${columns.map(() => '?').join(', ')})`, ...after)
  }
  const rows = await db.all<BodyRow>(
    `${selectFrom(family, order.columns)} WHERE ${where.sql}
      ORDER BY ${columns.map((column) => (down ? `${column} DESC` : column)).join(', ')}
      LIMIT ${Math.trunc(limit) + 1} OFFSET ${Math.trunc(offset)}`,
    where.params,
  )
  const shown = rows.slice(0, Math.min(limit, fitting(rows)))
  const items = shown.map((row) => toRecord(family, row))
  const last = shown.at(-1)
  if (rows.length === shown.length || !last) return { items }
  return { items, next: order.columns.map((column) => keyPart(last[column])) }
}

/** A record may hold 8 MiB: more than fits into one text would be in 100 of them. */
const PAGE_MAX = 64 * 1024 * 1024

/** How many of the rows one page takes: at least one. */
function fitting(rows: readonly BodyRow[]): number {
  let length = 0
  const tooMany = rows.findIndex(({ body }, i) => (length += body.length) > PAGE_MAX && i > 0)
  return tooMany === -1 ? rows.length : tooMany
}

const keyPart = (value: unknown): string | number => (typeof value === 'number' ? value : String(value))
