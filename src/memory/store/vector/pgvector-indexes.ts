import type { Database, Queryable } from '../../../database/database.ts'

/** pgvector indexes vectors of so many values; longer ones are compared one by one. */
const INDEXED_VALUES = 2_000

interface Unindexed {
  space_no: number
  dimension: number
  /** A build that was broken off left an index that cannot be used. */
  broken: boolean
}

/**
 * Builds the HNSW index of each space that lacks one, while others write. One process at a time; a build that the signal
 * ends is begun anew by the next. Spaces of models that count words have none: behind HNSW they find one in ten of what
 * they should. Contract: memory.md 9.1.
 * @param open a connection of its own, for statements of any length
 */
export async function buildVectorIndexes(db: Database, open: () => Database, signal: AbortSignal): Promise<void> {
  if ((await findUnindexed(db)).length === 0 || signal.aborted) return
  const own = open()
  const cancel = async (): Promise<void> => {
    const backend = await builder
    if (backend) await db.run('SELECT pg_cancel_backend($1)', [backend.pid])
  }
  const builder = own.get<{ pid: number; alone: boolean }>(
    'SELECT pg_backend_pid() AS pid, pg_try_advisory_lock(7169389, 1) AS alone',
  )
  const onAbort = (): void => void cancel().catch(() => undefined)
  signal.addEventListener('abort', onAbort)
  try {
    if (!(await builder)?.alone) return
    for (const { space_no: spaceNo, dimension, broken } of await findUnindexed(own)) {
      signal.throwIfAborted()
      const name = `cell_embedding_hnsw_${spaceNo}`
      if (broken) await own.run(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`)
      await own.run(
        `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ON cell_embedding
          USING hnsw ((embedding::vector(${dimension})) vector_cosine_ops) WITH (m = 16, ef_construction = 64)
          WHERE space_no = ${spaceNo}`,
      )
    }
    await own.run('SELECT pg_advisory_unlock(7169389, 1)')
  } finally {
    signal.removeEventListener('abort', onAbort)
    await own.close()
  }
}

const findUnindexed = (db: Queryable): Promise<Unindexed[]> =>
  db.all<Unindexed>(
    `SELECT space_no, dimension, pg_index.indexrelid IS NOT NULL AS broken
       FROM vector_space
       LEFT JOIN pg_catalog.pg_index ON pg_index.indexrelid = to_regclass('cell_embedding_hnsw_' || space_no)
      WHERE dimension <= ${INDEXED_VALUES} AND model NOT LIKE 'hash:%' AND model NOT LIKE 'noop:%'
        AND indisvalid IS NOT TRUE`,
  )
