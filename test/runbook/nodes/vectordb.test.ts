import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import { nodeServices } from '../../../src/cli/runbook/services.ts'
import { startPgvector } from '../../support/pgvector.ts'
import { node, output, run } from '../support.ts'
import { attributes, recorder } from './recorder.ts'

const use = (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  run(`node vectordb n {\n${attributes(values)}\n}`, options)

const EMPTY = { kind: null, meta: null, tags: null, at: null }
const TABLE = `
  CREATE TABLE docs (id text PRIMARY KEY, content text, kind text, n int, meta jsonb, tags text[], at timestamptz,
    embedding vector(2), title vector(2), small halfvec(2), thin sparsevec(2));`

describe('pgvector', () => {
  let database: Awaited<ReturnType<typeof startPgvector>>
  let client: pg.Client
  beforeAll(async () => {
    database = await startPgvector()
    client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query(TABLE)
  }, 60_000)
  afterAll(async () => {
    await client.end()
    await database.stop()
  })

  const inTable = (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
    use({ connectionString: database.url, table: 'docs', ...values }, options)
  const failure = async (values: Record<string, unknown>) => node(await inTable(values), 'n')?.error

  test('runbook#97 upsert, insert, filters, metrics, delete', async () => {
    const rows = [
      { id: 'a', content: 'x', kind: 'k1', n: 1, meta: { t: [1] }, embedding: [1, 0] },
      { id: 'b', content: "it's", kind: 'k2', n: 2, embedding: [0, 1] },
      { id: 'c', content: 'z', kind: null, n: 3, embedding: [1, 0] },
    ]
    expect(output(await inTable({ operation: 'insert', data: rows }), 'n')).toEqual({
      success: true,
      inserted: 3,
      updated: 0,
      count: 3,
      ids: ['a', 'b', 'c'],
    })
    const again = await inTable({
      operation: 'upsert',
      data: [
        { ...rows[1], n: 5 },
        { id: 'd', embedding: [-1, 0] },
      ],
    })
    expect(output(again, 'n')).toMatchObject({ inserted: 1, updated: 1, count: 2 })

    const found = output(await inTable({ vector: [1, 0], topK: 3 }), 'n')
    expect(found).toEqual({
      count: 3,
      results: [
        { ...EMPTY, id: 'a', content: 'x', kind: 'k1', n: 1, meta: { t: [1] }, distance: 0, similarity: 1 },
        { ...EMPTY, id: 'c', content: 'z', n: 3, distance: 0, similarity: 1 },
        { ...EMPTY, id: 'b', content: "it's", kind: 'k2', n: 5, distance: 1, similarity: 0 },
      ],
    })
    const ids = async (values: Record<string, unknown>): Promise<unknown> => {
      const { results } = output(await inTable({ vector: [1, 0], selectColumns: 'id', ...values }), 'n') as {
        results: { id: string; similarity: number }[]
      }
      return results.map(({ id, similarity }) => `${id} ${similarity}`)
    }
    expect(await ids({ distanceMetric: 'l2', topK: 4 })).toEqual([
      'a 1',
      'c 1',
      `b ${1 / (1 + Math.SQRT2)}`,
      `d ${1 / 3}`,
    ])
    expect(await ids({ distanceMetric: 'inner_product', filter: { n: [3, 5] } })).toEqual(['c 1', 'b 0'])
    expect(await ids({ filter: { kind: null, n: 3 } })).toEqual(['c 1'])
    expect(await ids({ filter: { kind: ['k2', null], n: 5 } })).toEqual(['b 0'])

    expect(output(await inTable({ operation: 'delete', deleteFilter: { id: ['a', 'd'] } }), 'n')).toEqual({
      success: true,
      deleted: 2,
    })
    expect((await failure({ operation: 'delete', deleteFilter: {} }))?.code).toBe('config_invalid')
    expect((await client.query('SELECT id FROM docs ORDER BY id')).rows).toEqual([{ id: 'b' }, { id: 'c' }])
  })

  test('runbook#97 all rows or none', async () => {
    const before = await client.query('SELECT count(*) FROM docs')
    const rows = [
      { id: 'e', embedding: [1, 0] },
      { id: 'e', embedding: [1, 0] },
    ]
    expect(await failure({ operation: 'insert', data: rows })).toMatchObject({
      code: 'sql_error',
      class: 'client_error',
      message: 'PostgreSQL refuses with SQLSTATE 23505',
      details: { sqlState: '23505' },
    })
    expect((await client.query('SELECT count(*) FROM docs')).rows).toEqual(before.rows)
  })

  test('runbook#97 chunks, embeddings per column, search over several columns', async () => {
    const { url, requests } = await recorder(({ body }) => {
      const { input } = JSON.parse(body) as { input: string[] }
      return { body: { data: input.map((text) => ({ embedding: [text.length, 1] })) } }
    })
    const embedding = { embeddingProvider: 'openai-compatible', embeddingBaseUrl: url, embeddingModel: 'm' }
    await client.query('TRUNCATE docs')
    await inTable({
      operation: 'insert',
      enableChunking: true,
      chunkSize: 4,
      chunkOverlap: 1,
      data: { id: 'long', content: 'abcdefgh' },
      ...embedding,
    })
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ model: 'm', input: ['abcd', 'defg', 'gh'] })
    expect((await client.query('SELECT id, content, embedding FROM docs ORDER BY id')).rows).toEqual([
      { id: 'long_0', content: 'abcd', embedding: '[4,1]' },
      { id: 'long_1', content: 'defg', embedding: '[4,1]' },
      { id: 'long_2', content: 'gh', embedding: '[2,1]' },
    ])
    await client.query('TRUNCATE docs')
    const vectorConfigs = [
      { column: 'embedding', textTemplate: '{{content}}' },
      { column: 'title', textTemplate: '{{kind}}: {{content}}' },
    ]
    const data = [{ id: 'a', content: 'xy', kind: 'k' }]
    expect((await inTable({ operation: 'insert', data, vectorConfigs, ...embedding })).status).toBe('succeeded')
    expect((await client.query('SELECT embedding, title FROM docs')).rows).toEqual([
      { embedding: '[2,1]', title: '[5,1]' },
    ])
    const several = {
      vectorColumns: ['embedding', 'title'],
      vector: [2, 1],
      distanceMetric: 'l2',
      selectColumns: ['id'],
    }
    const distance = async (values: Record<string, unknown>) =>
      (output(await inTable({ ...several, ...values }), 'n') as { results: { distance: number }[] }).results[0]
        ?.distance
    expect(await distance({ aggregationMethod: 'minimum' })).toBe(0)
    expect(await distance({ aggregationMethod: 'maximum' })).toBe(3)
    expect(await distance({ aggregationMethod: 'weighted', weights: [2, 1] })).toBeCloseTo(1)
    expect((await failure({ ...several, aggregationMethod: 'weighted' }))?.code).toBe('config_invalid')
    expect(output(await inTable({ query: 'xy', selectColumns: 'id', ...embedding }), 'n')).toMatchObject({ count: 1 })
  })

  test('runbook#97 every vector type; rows without a vector, or with a zero vector, are no results', async () => {
    await client.query('TRUNCATE docs')
    const rows = [
      { id: 'a', embedding: [1, 0], small: [1, 0], thin: [1, 0], title: [0, 1] },
      { id: 'b', embedding: [0, 1], small: [0, 1], thin: [0, 1] },
      { id: 'none', content: 'x', embedding: null },
      { id: 'zero', embedding: [0, 0] },
    ]
    expect(output(await inTable({ operation: 'insert', data: rows }), 'n')).toMatchObject({ inserted: 4 })
    const ids = async (values: Record<string, unknown>): Promise<unknown> => {
      const found = output(await inTable({ vector: [1, 0], selectColumns: ['id'], ...values }), 'n')
      return (found as { results: { id: string; distance: number }[] }).results.map(
        (row) => `${row.id} ${row.distance}`,
      )
    }
    for (const vectorColumn of ['embedding', 'small', 'thin'])
      expect(await ids({ vectorColumn })).toEqual(['a 0', 'b 1'])
    const vectorColumns = ['embedding', 'title']
    expect(await ids({ vectorColumns, distanceMetric: 'l2', topK: 2 })).toEqual(['a 0', 'zero 1'])
    expect(await ids({ vectorColumns, aggregationMethod: 'maximum' })).toEqual(['a 1', 'b 1'])
    expect(await ids({ vectorColumns, aggregationMethod: 'weighted', weights: [3, 1] })).toEqual(['a 0.25'])
  })

  test('runbook#97 columns of every kind come back as they were; another conflict column', async () => {
    await client.query('TRUNCATE docs; CREATE UNIQUE INDEX IF NOT EXISTS docs_n ON docs (n)')
    const row = { id: 'a', n: 7, tags: ['x', 'y,"z'], meta: 'text', at: '2026-01-02T03:04:05.000Z', embedding: [1, 1] }
    await inTable({ operation: 'insert', data: row })
    const found = async () => (output(await inTable({ vector: [1, 1] }), 'n') as { results: object[] }).results
    const { embedding: _embedding, ...shown } = row
    expect(await found()).toEqual([{ ...shown, content: null, kind: null, distance: 0, similarity: 1 }])
    const changed = { ...row, id: 'b', meta: { deep: [1, null] }, tags: [] }
    expect(output(await inTable({ operation: 'upsert', conflictColumn: 'n', data: changed }), 'n')).toEqual({
      success: true,
      inserted: 0,
      updated: 1,
      count: 1,
      ids: [7],
    })
    expect(await found()).toMatchObject([{ id: 'b', meta: { deep: [1, null] }, tags: [] }])
    expect(
      output(await inTable({ operation: 'delete', deleteFilter: { kind: null, tags: ['none'] } }), 'n'),
    ).toBeUndefined()
    expect(output(await inTable({ operation: 'delete', deleteFilter: { kind: null, n: [1, 7] } }), 'n')).toEqual({
      success: true,
      deleted: 1,
    })
  })

  test('runbook#97 the built-in embedder finds what shares words, without a network', async () => {
    await client.query('CREATE TABLE IF NOT EXISTS notes (id int PRIMARY KEY, content text, embedding vector(1024))')
    const { embedByHash } = nodeServices(
      { env: {} },
      { endpoint: '', apiKey: undefined, agentId: '', workspace: undefined },
      { channels: {} },
    )
    if (!embedByHash) throw new Error('no embedder')
    const services = { embedByHash }
    const notes = (values: Record<string, unknown>) =>
      inTable({ table: 'notes', embeddingProvider: 'hash', ...values }, { services })
    const data = [
      { id: 1, content: 'The lighthouse keeper likes rye bread.' },
      { id: 2, content: 'The harbour is closed on Sundays.' },
    ]
    expect(output(await notes({ operation: 'upsert', data }), 'n')).toMatchObject({ inserted: 2, ids: [1, 2] })
    expect(output(await notes({ text: 'closed harbours', topK: 1 }), 'n')).toMatchObject({ results: [data[1]] })
    expect((await failure({ table: 'notes', embeddingProvider: 'hash', query: 'x' }))?.code).toBe('config_invalid')
  })

  test('runbook#97 SQLSTATE and its class; the values of the statement are not told', async () => {
    await client.query(`TRUNCATE docs;
      CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = NEW.content; END $$;
      CREATE TABLE IF NOT EXISTS moody (id text PRIMARY KEY, content text, embedding vector(2));
      CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON moody FOR EACH ROW EXECUTE FUNCTION refuse();`)
    const state = async (values: Record<string, unknown>) => {
      const error = await failure(values)
      return error && [error.code, error.class, error.details?.sqlState]
    }
    const raised = async (sqlState: string) =>
      state({ table: 'moody', operation: 'insert', data: { id: 'a', content: sqlState, embedding: [1, 1] } })
    for (const transient of ['08006', '40001', '40P01', '53300', '57014'])
      expect(await raised(transient)).toEqual(['sql_error', 'server_error', transient])
    expect(await raised('23514')).toEqual(['sql_error', 'client_error', '23514'])
    expect(await raised('28000')).toEqual(['auth_failed', 'client_error', undefined])
    expect(await state({ operation: 'insert', data: { id: 'x', embedding: [1, 1, 1] } })).toEqual([
      'sql_error',
      'client_error',
      '22000',
    ])
    expect(await state({ vector: [1, 0], filter: { gone: 1 } })).toEqual(['sql_error', 'client_error', '42703'])
    expect(await state({ operation: 'upsert', conflictColumn: 'kind', data: { id: 'x', embedding: [1, 1] } })).toEqual([
      'sql_error',
      'client_error',
      '42P10',
    ])
    const report = await inTable({ operation: 'insert', data: { id: 'x', n: 'secret-value', embedding: [1, 1] } })
    expect(node(report, 'n')?.error?.details).toEqual({ sqlState: '22P02' })
    expect(node(report, 'n')?.error?.message).not.toContain('secret-value')
  })

  test('runbook#97 a time limit ends a statement that waits', async () => {
    await client.query('BEGIN; LOCK TABLE docs')
    try {
      expect((await failure({ vector: [1, 0], timeout: '100ms' }))?.code).toBe('timeout')
    } finally {
      await client.query('ROLLBACK')
    }
  })

  test('runbook#98 identifiers are checked, values are parameters', async () => {
    for (const values of [
      { table: 'a;drop' },
      { table: 'a.b.c' },
      { vectorColumn: 'a"b' },
      { filter: { 'x = 1 OR 1': 1 } },
      { selectColumns: 'id, 1x' },
      { conflictColumn: 'a b' },
    ]) {
      expect((await failure({ vector: [1, 0], ...values }))?.code).toBe('identifier_invalid')
    }
    const content = `'; DROP TABLE docs; -- "\\`
    await inTable({ table: 'public.docs', operation: 'upsert', data: { id: 'q', content, embedding: [1, 1] } })
    expect((await client.query('SELECT content FROM docs WHERE id = $1', ['q'])).rows).toEqual([{ content }])
  })

  test('runbook#109 a wrong password and a missing server; the URL is in no report', async () => {
    const gone = 'postgresql://user:pass-word@127.0.0.1:1/db'
    const report = await inTable({ connectionString: gone, vector: [1] })
    expect(node(report, 'n')?.error?.code).toBe('network_error')
    expect(JSON.stringify(report)).not.toContain('pass-word')
    const link = 'postgresql://user:pass-word@169.254.169.254/db'
    expect((await failure({ connectionString: link, vector: [1] }))?.code).toBe('address_refused')
    expect((await failure({ connectionString: `${gone}?sslmode=no-verify`, vector: [1] }))?.code).toBe('config_invalid')
    expect((await failure({ table: 'nowhere', vector: [1] }))?.details).toEqual({ sqlState: '42P01' })
    expect((await failure({}))?.code).toBe('config_invalid')
  })
})

test('runbook#97 embedding: three tries, then embedding_failed; 401 at once', async () => {
  const { url, requests } = await recorder(({ url: path }) => ({ status: path.startsWith('/401') ? 401 : 500 }))
  const values = (base: string) => ({
    connectionString: 'postgresql://127.0.0.1:1/db',
    table: 't',
    query: 'x',
    embeddingProvider: 'voyage',
    embeddingApiKey: 'key-of-voyage',
    embeddingBaseUrl: base,
  })
  expect(node(await use(values(url)), 'n')?.error?.code).toBe('embedding_failed')
  expect(requests).toHaveLength(3)
  expect(requests[0]).toMatchObject({ url: '/embeddings', headers: { authorization: 'Bearer key-of-voyage' } })
  expect(node(await use(values(`${url}/401`)), 'n')?.error?.code).toBe('auth_failed')
  expect(requests).toHaveLength(4)
})
