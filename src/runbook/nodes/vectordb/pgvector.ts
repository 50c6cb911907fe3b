import { NodeError } from '../../errors.ts'
import { fromJson } from '../../hcl/json.ts'
import { isMap, mapOf, type Value, type ValueMap } from '../../hcl/values.ts'
import type { NodeContext, NodeResult } from '../../registry.ts'
import { asText, items, map, optionalText, text, texts } from '../settings.ts'
import { embedTexts, type Vector } from './embed.ts'
import { withPostgres, type Session } from './store/connection.ts'
import { columnsOf, deleteRows, identifier, searchRows, tableName, writeRow } from './store/table.ts'

/** Vectors in PostgreSQL; all rows of a node in one transaction. Contract: runbook.md 6.6. */
export async function usePgvector(context: NodeContext): Promise<NodeResult> {
  const { config } = context
  const connectionString = optionalText(config, 'connectionString')
  const name = optionalText(config, 'table')
  if (connectionString === undefined || name === undefined) {
    throw new NodeError('config_invalid', '"connectionString" and "table" are required for pgvector')
  }
  const table = tableName(name)
  const work = await (OPERATIONS[text(config, 'operation')] ?? search)(context, table)
  return { output: fromJson(plain(await withPostgres(context, connectionString, work))) }
}

/** Checks and embeds first, so that no transaction waits for a service. */
type Operation = (context: NodeContext, table: string) => Promise<(session: Session) => Promise<object>>

const search: Operation = async (context, table) => {
  const { config } = context
  const several = texts(config, 'vectorColumns')
  const options = {
    vectorColumns: several.length > 0 ? several : [text(config, 'vectorColumn')],
    aggregation: text(config, 'aggregationMethod'),
    weights: items(config, 'weights').map(Number),
    metric: text(config, 'distanceMetric'),
    select: texts(config, 'selectColumns'),
    filter: map(config, 'filter'),
    tieColumn: text(config, 'conflictColumn'),
    topK: Number(config.topK),
  }
  const named = [...options.vectorColumns, ...options.select, options.tieColumn, ...Object.keys(options.filter)]
  named.forEach(identifier)
  const vector = await queryVector(context)
  return async (session) => {
    const columns = await columnsOf(session, table)
    const results = await searchRows(session, table, columns, { ...options, vector })
    return { results, count: results.length }
  }
}

async function queryVector(context: NodeContext): Promise<Vector> {
  const { config } = context
  const query = optionalText(config, 'query') ?? optionalText(config, 'text')
  const given = items(config, 'vector').map(Number)
  if (given.length > 0) return given
  if (query === undefined) throw new NodeError('config_invalid', 'a search takes "query" or "vector"')
  const [vector = []] = await embedTexts(context, [query])
  return vector
}

const write =
  (conflict: boolean): Operation =>
  async (context, table) => {
    const key = text(context.config, 'conflictColumn')
    identifier(key)
    const rows = await embedRows(context, chunked(context.config))
    for (const row of rows) Object.keys(row).forEach(identifier)
    return async (session) => {
      const columns = await columnsOf(session, table)
      const ids: unknown[] = []
      let inserted = 0
      for (const row of rows) {
        const written = await writeRow(session, table, columns, row, { conflict, key })
        ids.push(written.id)
        if (written.inserted) inserted++
      }
      return { success: true, inserted, updated: rows.length - inserted, count: rows.length, ids }
    }
  }

const remove: Operation = (context, table) => {
  const filter = map(context.config, 'deleteFilter')
  if (Object.keys(filter).length === 0) throw new NodeError('config_invalid', '"deleteFilter" is required, not empty')
  Object.keys(filter).forEach(identifier)
  return Promise.resolve(async (session) => ({ success: true, deleted: await deleteRows(session, table, filter) }))
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  search,
  insert: write(false),
  upsert: write(true),
  delete: remove,
}

/** The rows of `data`, or one for each chunk of their text; a text key gets the number of the chunk. */
function chunked(config: ValueMap): ValueMap[] {
  const { data = null } = config
  const rows = isMap(data) ? [data] : items(config, 'data').filter(isMap)
  if (rows.length === 0) throw new NodeError('config_invalid', '"data" is required to write')
  if (config.enableChunking !== true) return rows
  const [size, overlap] = [Number(config.chunkSize), Number(config.chunkOverlap)]
  if (overlap >= size) throw new NodeError('config_invalid', '"chunkOverlap" must be less than "chunkSize"')
  const [column, key] = [text(config, 'textColumn'), text(config, 'conflictColumn')]
  return rows.flatMap((row) =>
    chunks(text(row, column), size, overlap).map((chunk, i) => {
      const id = row[key]
      return mapOf([
        ...Object.entries(row),
        [column, chunk],
        ...(typeof id === 'string' ? [[key, `${id}_${i}`] as const] : []),
      ])
    }),
  )
}

/** Pieces of at most `size` characters, each beginning with the last `overlap` of the one before. */
function chunks(content: string, size: number, overlap: number): string[] {
  const characters = [...content]
  const count = Math.max(1, Math.ceil((characters.length - overlap) / (size - overlap)))
  return Array.from({ length: count }, (_, i) =>
    characters.slice(i * (size - overlap), i * (size - overlap) + size).join(''),
  )
}

interface Target {
  readonly column: string
  readonly textOf: (row: ValueMap) => string
}

/** Rows with a vector in each vector column; one that a row brings along stays. */
async function embedRows(context: NodeContext, rows: readonly ValueMap[]): Promise<ValueMap[]> {
  const { config } = context
  const column = text(config, 'vectorColumn')
  const vector = items(config, 'vector')
  if (vector.length > 0) return rows.map((row) => mapOf([...Object.entries(row), [column, vector]]))
  const added = rows.map((row) => Object.entries(row))
  for (const target of targets(config)) {
    const open = [...rows.keys()].filter((i) => rows[i]?.[target.column] === undefined)
    const vectors = await embedTexts(
      context,
      open.map((i) => target.textOf(rows[i] ?? mapOf([]))),
    )
    open.forEach((i, n) => added[i]?.push([target.column, vectors[n] ?? []]))
  }
  return added.map(mapOf)
}

function targets(config: ValueMap): Target[] {
  const configured = items(config, 'vectorConfigs').filter(isMap)
  if (configured.length === 0) {
    const source = text(config, 'textColumn')
    return [{ column: text(config, 'vectorColumn'), textOf: (row) => text(row, source) }]
  }
  return configured.map((each) => ({
    column: text(each, 'column'),
    textOf: (row) =>
      text(each, 'textTemplate').replace(/\{\{\s*([^{}\s]+)\s*\}\}/g, (_, name: string) => asText(row[name] ?? null)),
  }))
}

/** Dates and the driver's other objects as JSON has them. */
const plain = (result: object): Value => JSON.parse(JSON.stringify(result))
