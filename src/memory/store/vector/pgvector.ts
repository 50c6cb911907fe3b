import { inNumbers, type Database, type Queryable } from '../../../database/database.ts'
import type { ScoredCell, VectorSearch } from '../../search/types.ts'
import { vectorRows } from './rows.ts'
import type { VectorStore } from './vector-store.ts'

const OF_MODEL = 'space_no IN (SELECT space_no FROM vector_space WHERE model = $2)'

/** The extension pgvector of PostgreSQL, which searches by itself. Vectors travel as text. Contract: memory.md 9.1. */
export const pgvector: VectorStore = {
  async insert(tx, workspaceId, model, vectors) {
    for (const dimension of new Set(vectors.map(({ vector }) => vector.length))) {
      const alike = vectors.filter(({ vector }) => vector.length === dimension)
      await tx.run(
        `INSERT INTO cell_embedding (cell_no, space_no, workspace_id, embedding)
         SELECT (cell->>0)::bigint, $2, $3, (cell->>1)::vector FROM json_array_elements($1::json) AS cell
         ON CONFLICT (cell_no, space_no) DO UPDATE SET embedding = excluded.embedding`,
        [
          JSON.stringify(alike.map(({ cellNo, vector }) => [cellNo, toText(vector)])),
          await spaceFor(tx, model, dimension),
          workspaceId,
        ],
      )
    }
  },

  async find(db, model, cellNos) {
    const rows = await db.all<{ cell_no: number; embedding: string }>(
      `SELECT cell_no, embedding::text AS embedding FROM cell_embedding
        WHERE cell_no IN ${inNumbers(db, '$1')} AND ${OF_MODEL}`,
      [JSON.stringify(cellNos), model],
    )
    return new Map(rows.map((row) => [row.cell_no, Float32Array.from(JSON.parse(row.embedding))]))
  },

  async findEmbedded(db, model, cellNos) {
    const rows = await db.all<{ cell_no: number }>(
      `SELECT cell_no FROM cell_embedding WHERE cell_no IN ${inNumbers(db, '$1')} AND ${OF_MODEL}`,
      [JSON.stringify(cellNos), model],
    )
    return new Set(rows.map((row) => row.cell_no))
  },

  async delete(tx, cellNos, model) {
    const ofModel = model === undefined ? '' : `AND ${OF_MODEL}`
    await tx.run(`DELETE FROM cell_embedding WHERE cell_no IN ${inNumbers(tx, '$1')} ${ofModel}`, [
      JSON.stringify(cellNos),
      ...(model === undefined ? [] : [model]),
    ])
    // What the database kept before pgvector was chosen.
    await vectorRows.delete(tx, cellNos, model)
  },

  deleteOthers: (tx, model, cellNos) =>
    tx.run(`DELETE FROM cell_embedding WHERE cell_no IN ${inNumbers(tx, '$1')} AND NOT ${OF_MODEL}`, [
      JSON.stringify(cellNos),
      model,
    ]),

  search: searchVectors,
}

interface Space {
  space_no: number
  dimension: number
  version: string
}

function searchVectors(db: Database, workspaceId: string, model: string): VectorSearch {
  let known: Space | undefined
  const spaceOf = async (dimension: number): Promise<Space | undefined> => {
    if (known?.dimension === dimension) return known
    known = await db.get<Space>(
      `SELECT space_no, dimension, extversion AS version FROM vector_space, pg_catalog.pg_extension
        WHERE model = $1 AND dimension = $2 AND extname = 'vector'`,
      [model, dimension],
    )
    return known
  }
  return {
    async nearest(query, limit) {
      const space = await spaceOf(query.length)
      return space ? findNearest(db, workspaceId, space, query, limit) : []
    },
    async compare(query, cellNos, limit = cellNos.length) {
      const space = await spaceOf(query.length)
      return space ? compare(db, space, query, cellNos, limit) : []
    },
  }
}

/**
 * Through the HNSW index of the space where it has one, else by comparing all. The filter on the workspace is applied while
 * the index is walked, on and on (pgvector 0.8) or from a longer list of candidates.
 */
async function findNearest(
  db: Database,
  workspaceId: string,
  { space_no, dimension, version }: Space,
  query: Float32Array,
  limit: number,
): Promise<ScoredCell[]> {
  const isIterative = Number(version.split('.')[0]) > 0 || Number(version.split('.')[1]) >= 8
  const rows = await db.snapshot(async (view) => {
    await view.run(
      `SELECT set_config('hnsw.ef_search', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true)
              ${isIterative ? `, set_config('hnsw.iterative_scan', 'relaxed_order', true)` : ''}`,
      [String(isIterative ? EF_SEARCH : Math.min(Math.max(limit, EF_SEARCH), MAX_EF_SEARCH))],
    )
    // Numbers stand in the text, for the planner to see that the index of the space fits.
    return view.all<Distance>(
      `SELECT cell_no, embedding::vector(${dimension}) <=> $1::vector AS distance FROM cell_embedding
        WHERE workspace_id = $2 AND space_no = ${space_no} ORDER BY distance LIMIT $3`,
      [toText(query), workspaceId, limit],
    )
  })
  return scored(rows)
}

const EF_SEARCH = 64
const MAX_EF_SEARCH = 1000

async function compare(
  db: Database,
  { space_no }: Space,
  query: Float32Array,
  cellNos: readonly number[],
  limit: number,
): Promise<ScoredCell[]> {
  const rows = await db.all<Distance>(
    `SELECT cell_no, embedding <=> $1::vector AS distance FROM cell_embedding
      WHERE cell_no IN ${inNumbers(db, '$2')} AND space_no = $3 ORDER BY distance, cell_no LIMIT $4`,
    [toText(query), JSON.stringify(cellNos), space_no, limit],
  )
  return scored(rows)
}

interface Distance {
  cell_no: number
  distance: number
}

/** A zero vector is at no distance from anything, and no hit. */
const scored = (rows: readonly Distance[]): ScoredCell[] =>
  rows
    .filter(({ distance }) => !Number.isNaN(distance))
    .map(({ cell_no, distance }) => ({ cellNo: cell_no, cosine: 1 - distance }))
    .sort((a, b) => b.cosine - a.cosine || a.cellNo - b.cellNo)

/** Two transactions that meet a new model at once wait for each other here. */
async function spaceFor(tx: Queryable, model: string, dimension: number): Promise<number> {
  const find = () =>
    tx.get<{ space_no: number }>('SELECT space_no FROM vector_space WHERE model = $1 AND dimension = $2', [
      model,
      dimension,
    ])
  let space = await find()
  if (!space) {
    await tx.run('INSERT INTO vector_space (model, dimension) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
      model,
      dimension,
    ])
    space = await find()
  }
  if (!space) throw new Error(`no vector space for ${model} of ${dimension} values`)
  return space.space_no
}

/** As short as float32 allows would be 13 KB for 1024 values instead of 21, and take 0.27 ms instead of 0.04. */
const toText = (vector: Float32Array): string => `[${vector.join(',')}]`
