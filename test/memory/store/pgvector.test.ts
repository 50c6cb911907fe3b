import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import type { Database } from '../../../src/database/database.ts'
import { migrate } from '../../../src/database/migrate.ts'
import { openDatabase } from '../../../src/database/open.ts'
import { buildVectorIndexes } from '../../../src/memory/store/vector/pgvector-indexes.ts'
import { requirePgvector } from '../../../src/memory/store/vector/pgvector-setup.ts'
import { pgvector } from '../../../src/memory/store/vector/pgvector.ts'
import { startPgvector, type PgvectorServer } from '../../support/pgvector.ts'
import { dot, vectorSource } from '../search/random-vectors.ts'

const MODEL = 'openai:small'
const forever = new AbortController().signal

let server: PgvectorServer
let db: Database
const open = (alone = false): Database =>
  openDatabase({ dialect: 'postgres', dsn: server.url, synchronous: 'normal', alone })

beforeAll(async () => {
  server = await startPgvector()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await db?.close()
  await server.clear()
  db = open()
  await migrate(db, 'memory', join(packageRoot, 'migrations/memory'), 0)
  await requirePgvector(db)
  await migrate(db, 'memory-pgvector', join(packageRoot, 'migrations/memory-pgvector'), 0)
})
afterAll(() => db.close())

/** Cells of these numbers, with vectors by number. */
const insert = (model: string, vectorOf: (n: number) => Float32Array, cellNos: readonly number[], ws = 'ws_a') =>
  db.transaction((tx) =>
    pgvector.insert(
      tx,
      ws,
      model,
      cellNos.map((cellNo) => ({ cellNo, vector: vectorOf(cellNo) })),
    ),
  )
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1)
const build = (): Promise<void> => buildVectorIndexes(db, () => open(true), forever)

const indexes = async (): Promise<{ name: string; valid: boolean }[]> =>
  db.all(
    `SELECT relname AS name, indisvalid AS valid FROM pg_index JOIN pg_class ON oid = indexrelid
      WHERE relname LIKE 'cell_embedding_hnsw%' ORDER BY relname`,
  )

test('who may not make the extension is told who may', async () => {
  await db.run('DROP EXTENSION vector CASCADE')
  await db.run('CREATE ROLE plain')
  await db.run('SET ROLE plain')
  await expect(requirePgvector(db)).rejects.toThrow(/administrator of the database run CREATE EXTENSION vector/)
  await db.run('RESET ROLE')
  await db.run('DROP ROLE plain')
  await Promise.all([requirePgvector(db), requirePgvector(db)])
  await requirePgvector(db)
})

test('vectors come back as they were, whatever their values', async () => {
  const values = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 20 })
  let cellNo = 0
  await fc.assert(
    fc.asyncProperty(values, async (numbers) => {
      const vector = Float32Array.from(numbers)
      await insert(MODEL, () => vector, [++cellNo])
      // The extension knows one zero.
      expect((await pgvector.find(db, MODEL, [cellNo])).get(cellNo)).toEqual(vector.map((value) => value + 0))
    }),
    { numRuns: 20 },
  )
})

test('a Cell has one vector of a model, and loses those of others', async () => {
  const [first, second] = [vectorSource(8, 'uniform', 1), vectorSource(8, 'uniform', 2)]
  await insert(MODEL, first, [1, 2, 3])
  await insert(MODEL, second, [3])
  await insert('openai:old', first, [1, 2])
  expect((await pgvector.find(db, MODEL, [1, 3, 9])).get(3)).toEqual(second(3))
  expect(await pgvector.findEmbedded(db, 'openai:old', [1, 2, 3])).toEqual(new Set([1, 2]))
  expect(await db.transaction((tx) => pgvector.deleteOthers(tx, MODEL, [1, 3]))).toBe(1)
  await db.transaction((tx) => pgvector.delete(tx, [2], 'openai:old'))
  expect(await pgvector.findEmbedded(db, 'openai:old', [1, 2, 3])).toEqual(new Set())
  await db.transaction((tx) => pgvector.delete(tx, [1, 2]))
  expect(await pgvector.findEmbedded(db, MODEL, [1, 2, 3])).toEqual(new Set([3]))
})

test('memory#92 vectors of another model or dimension are never compared; 16,000 values are taken', async () => {
  const [long, short] = [vectorSource(16_000, 'uniform'), vectorSource(4, 'uniform')]
  await insert(MODEL, long, [1])
  await insert(MODEL, short, [2])
  await insert('openai:other', short, [3])
  const search = pgvector.search?.(db, 'ws_a', MODEL)
  const found = async (query: Float32Array) => (await search?.nearest(query, 5))?.map((cell) => cell.cellNo)
  expect(await found(long(1))).toEqual([1])
  expect(await found(short(2))).toEqual([2])
  expect(await found(vectorSource(5, 'uniform')(1))).toEqual([])
  expect((await search?.compare(short(2), [1, 2, 3]))?.map((cell) => cell.cellNo)).toEqual([2])
})

describe('HNSW', () => {
  test('an index for each model of a provider, none for models that count words or for long vectors', async () => {
    const vectorOf = vectorSource(8, 'uniform')
    const models = [MODEL, 'hash:default', 'noop:default', 'voyage:voyage-3']
    for (const [i, model] of models.entries()) await insert(model, vectorOf, [i + 1])
    await insert('openai:large', vectorSource(3_072, 'uniform'), [9])
    await Promise.all([build(), build()])
    expect(await indexes()).toEqual([
      { name: 'cell_embedding_hnsw_1', valid: true },
      { name: 'cell_embedding_hnsw_4', valid: true },
    ])
    // As a build leaves it that was broken off.
    await db.run(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'cell_embedding_hnsw_4'::regclass`)
    await build()
    expect((await indexes()).every(({ valid }) => valid)).toBe(true)
    await insert(MODEL, vectorOf, [20])
    expect(await pgvector.search?.(db, 'ws_a', MODEL).nearest(vectorOf(20), 1)).toMatchObject([{ cellNo: 20 }])
  })

  test('an aborted build leaves no index, and the next one makes it', async () => {
    await insert(MODEL, vectorSource(8, 'uniform'), [1])
    await buildVectorIndexes(db, () => open(true), AbortSignal.abort())
    expect(await indexes()).toEqual([])
    await build()
    expect(await indexes()).toHaveLength(1)
  })

  test('finds the nearest of a workspace among those of others', async () => {
    const vectorOf = vectorSource(32, 'clustered')
    await insert(MODEL, vectorOf, upTo(3_000), 'ws_a')
    await insert(
      MODEL,
      vectorOf,
      upTo(6_000).map((n) => n + 3_000),
      'ws_b',
    )
    await build()
    await db.run('ANALYZE cell_embedding')
    const search = pgvector.search?.(db, 'ws_a', MODEL)
    let common = 0
    for (let i = 1; i <= 20; i++) {
      const query = vectorOf(-i)
      const nearly = (await search?.nearest(query, 100)) ?? []
      const exactly = (await search?.compare(query, upTo(9_000).slice(0, 3_000), 100)) ?? []
      expect(nearly.length).toBe(100)
      expect(nearly.every(({ cellNo }) => cellNo <= 3_000)).toBe(true)
      expect(exactly[0]?.cosine).toBeCloseTo(dot(query, vectorOf(exactly[0]?.cellNo ?? 0)), 5)
      const found = new Set(nearly.map(({ cellNo }) => cellNo))
      common += exactly.slice(0, 10).filter(({ cellNo }) => found.has(cellNo)).length
    }
    expect(common / 200).toBeGreaterThan(0.9)
    await db.run('SELECT pg_stat_force_next_flush()')
    const scans = await db.get<{ n: number }>(
      `SELECT idx_scan AS n FROM pg_stat_user_indexes WHERE indexrelname LIKE 'cell_embedding_hnsw%'`,
    )
    expect(scans?.n).toBe(20)
  })

  test('a zero vector is kept, and is no hit', async () => {
    await insert(MODEL, (n) => new Float32Array(4).fill(n - 1), [1, 2])
    await build()
    const search = pgvector.search?.(db, 'ws_a', MODEL)
    const query = Float32Array.of(1, 0, 0, 0)
    expect(await search?.nearest(query, 5)).toMatchObject([{ cellNo: 2 }])
    expect(await search?.compare(query, [1, 2])).toMatchObject([{ cellNo: 2 }])
    expect(await pgvector.findEmbedded(db, MODEL, [1, 2])).toEqual(new Set([1, 2]))
  })
})
