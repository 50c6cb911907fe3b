import { NodeError } from '../../../errors.ts'
import { encodeJson } from '../../../hcl/json.ts'
import { isMap, itemsOf, sortedKeys, type Value, type ValueMap } from '../../../hcl/values.ts'
import type { Session } from './connection.ts'

/** Distance operators of pgvector, and the similarity that follows from a distance. */
const METRICS: Readonly<Record<string, { operator: string; similarity: (distance: number) => number }>> = {
  cosine: { operator: '<=>', similarity: (distance) => 1 - distance },
  l2: { operator: '<->', similarity: (distance) => 1 / (1 + distance) },
  inner_product: { operator: '<#>', similarity: (distance) => -distance },
}
const COSINE = { operator: '<=>', similarity: (distance: number): number => 1 - distance }

const VECTOR_TYPES = ['vector', 'halfvec', 'sparsevec']

/** A quoted identifier. Contract: runbook.md 5.3. @throws NodeError identifier_invalid */
export function identifier(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) return `"${name}"`
  throw new NodeError('identifier_invalid', `${JSON.stringify(name)} is no identifier`)
}

/** A table, which may name its schema. */
export function tableName(name: string): string {
  const parts = name.split('.')
  if (parts.length <= 2) return parts.map(identifier).join('.')
  throw new NodeError('identifier_invalid', `${JSON.stringify(name)} is no table name`)
}

/** Type name by column. */
export type Columns = ReadonlyMap<string, string>

/** Its columns, in order. */
export async function columnsOf(session: Session, table: string): Promise<Columns> {
  const rows = await session.rows(
    `SELECT a.attname AS name, t.typname AS type FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
     WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
    [table],
  )
  return new Map(rows.map(({ name, type }) => [String(name), String(type)]))
}

export interface Search {
  readonly vector: readonly number[]
  readonly vectorColumns: readonly string[]
  readonly aggregation: string
  readonly weights: readonly number[]
  readonly metric: string
  readonly select: readonly string[]
  readonly filter: ValueMap
  readonly tieColumn: string
  readonly topK: number
}

/** The nearest rows, each with `distance` and `similarity`. */
export async function searchRows(session: Session, table: string, columns: Columns, search: Search) {
  const { operator, similarity } = METRICS[search.metric] ?? COSINE
  const params: unknown[] = [vectorText(search.vector)]
  const distances = search.vectorColumns.map(
    (column) => `(${identifier(column)} ${operator} $1::vector${cast(columns, column)})`,
  )
  const distance = aggregated(distances, search)
  const where = [...condition(search.filter, params), present(search)].join(' AND ')
  const ties = columns.has(search.tieColumn) ? `, ${identifier(search.tieColumn)}` : ''
  const chosen =
    search.select.length > 0
      ? search.select
      : [...columns].filter(([, type]) => !VECTOR_TYPES.includes(type)).map(([name]) => name)
  params.push(search.topK)
  const rows = await session.rows(
    `SELECT ${[...chosen.map(identifier), `${distance} AS "distance"`].join(', ')} FROM ${table}
     WHERE ${where} ORDER BY ${distance}${ties} LIMIT $${params.length}`,
    params,
  )
  return rows
    .map((row) => ({ ...row, distance: Number(row.distance), similarity: similarity(Number(row.distance)) }))
    .filter((row) => Number.isFinite(row.distance)) // a zero vector has no direction
}

/** Behind `::vector`, for columns of the other vector types. */
const cast = (columns: Columns, column: string): string => {
  const type = columns.get(column) ?? ''
  return type !== 'vector' && VECTOR_TYPES.includes(type) ? `::${type}` : ''
}

/** Rows without a vector are at no distance; the least and the greatest of several need one of them. */
const present = ({ vectorColumns, aggregation }: Search): string =>
  `(${vectorColumns
    .map((column) => `${identifier(column)} IS NOT NULL`)
    .join(aggregation === 'weighted' ? ' AND ' : ' OR ')})`

function aggregated(distances: readonly string[], { aggregation, weights }: Search): string {
  if (distances.length === 1) return distances.join('')
  if (aggregation === 'minimum') return `LEAST(${distances.join(', ')})`
  if (aggregation === 'maximum') return `GREATEST(${distances.join(', ')})`
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (weights.length !== distances.length || total <= 0) {
    throw new NodeError('config_invalid', '"weights" takes a number for each of "vectorColumns"')
  }
  return `(${distances.map((distance, i) => `${Number(weights[i]) / total} * ${distance}`).join(' + ')})`
}

/** Equality, any of a list, or null, for each column. */
function condition(filter: ValueMap, params: unknown[]): string[] {
  return sortedKeys(filter).map((name) => {
    const [column, value] = [identifier(name), filter[name] ?? null]
    if (value === null) return `${column} IS NULL`
    const list = itemsOf(value)
    params.push(list ? list.filter((item) => item !== null).map((item) => parameter(item)) : parameter(value))
    if (!list) return `${column} = $${params.length}`
    return `(${column} = ANY($${params.length})${list.includes(null) ? ` OR ${column} IS NULL` : ''})`
  })
}

/** Inserts one row; with `conflict` it replaces the row of the same key. */
export async function writeRow(
  session: Session,
  table: string,
  columns: Columns,
  row: ValueMap,
  { conflict, key }: { conflict: boolean; key: string },
): Promise<{ id: unknown; inserted: boolean }> {
  const names = Object.keys(row)
  const quoted = names.map(identifier)
  const params = names.map((name) => parameter(row[name] ?? null, columns.get(name)))
  const places = names.map((name, i) =>
    VECTOR_TYPES.includes(columns.get(name) ?? '') ? `$${i + 1}::vector${cast(columns, name)}` : `$${i + 1}`,
  )
  const updated = quoted.filter((name) => name !== identifier(key))
  const assignments = (updated.length > 0 ? updated : [identifier(key)]).map((name) => `${name} = EXCLUDED.${name}`)
  const onConflict = conflict ? `ON CONFLICT (${identifier(key)}) DO UPDATE SET ${assignments.join(', ')}` : ''
  const id = columns.has(key) ? identifier(key) : 'NULL'
  const [written] = await session.rows(
    `INSERT INTO ${table} (${quoted.join(', ')}) VALUES (${places.join(', ')}) ${onConflict}
     RETURNING ${id} AS id, (xmax = 0) AS inserted`,
    params,
  )
  return { id: written?.id ?? null, inserted: written?.inserted !== false }
}

/** How many were deleted. @throws NodeError config_invalid for a filter that names nothing: it would delete all */
export function deleteRows(session: Session, table: string, filter: ValueMap): Promise<number> {
  const params: unknown[] = []
  const where = condition(filter, params)
  if (where.length === 0) throw new NodeError('config_invalid', '"deleteFilter" must not be empty')
  return session.count(`DELETE FROM ${table} WHERE ${where.join(' AND ')}`, params)
}

const vectorText = (vector: readonly unknown[]): string => `[${vector.map(Number).join(',')}]`

/** A value as the driver sends it: vectors and JSON as text, lists of array columns as they are. */
function parameter(value: Value, type = ''): unknown {
  const list = itemsOf(value)
  if (list && VECTOR_TYPES.includes(type)) return vectorText(list)
  if (list && type.startsWith('_')) return list.map((item) => parameter(item))
  return list || isMap(value) || (value !== null && type.startsWith('json')) ? encodeJson(value) : value
}
