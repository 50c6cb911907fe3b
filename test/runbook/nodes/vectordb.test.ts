import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import { createPostgresDatabase, hasPostgres, type PostgresDatabase } from '../../support/postgres.ts'
import { node, output, run } from '../support.ts'
import { attributes, recorder } from './recorder.ts'

const use = (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  run(`node vectordb n {\n${attributes(values)}\n}`, options)

/** The npm build of PostgreSQL has no pgvector: a type and operators of the same names and meanings stand in for it. */
const STAND_IN = `
  CREATE DOMAIN vector AS text;
  CREATE FUNCTION numbers(v text) RETURNS float8[] LANGUAGE sql IMMUTABLE AS
    $$ SELECT string_to_array(trim(both '[]' from v), ',')::float8[] $$;
  CREATE FUNCTION dot(a float8[], b float8[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS
    $$ SELECT sum(x * y) FROM unnest(a, b) AS t(x, y) $$;
  CREATE FUNCTION cosine(a text, b text) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$ SELECT 1 - dot(numbers(a), numbers(b))
    / sqrt(dot(numbers(a), numbers(a)) * dot(numbers(b), numbers(b))) $$;
  CREATE FUNCTION l2(a text, b text) RETURNS float8 LANGUAGE sql IMMUTABLE AS
    $$ SELECT sqrt(sum((x - y) ^ 2)) FROM unnest(numbers(a), numbers(b)) AS t(x, y) $$;
  CREATE FUNCTION inner_product(a text, b text) RETURNS float8 LANGUAGE sql IMMUTABLE AS
    $$ SELECT -dot(numbers(a), numbers(b)) $$;
  CREATE OPERATOR <=> (LEFTARG = text, RIGHTARG = text, FUNCTION = cosine);
  CREATE OPERATOR <-> (LEFTARG = text, RIGHTARG = text, FUNCTION = l2);
  CREATE OPERATOR <#> (LEFTARG = text, RIGHTARG = text, FUNCTION = inner_product);
  CREATE TABLE docs (id text PRIMARY KEY, content text, kind text, n int, meta jsonb, embedding vector, title vector);`

describe.skipIf(!hasPostgres)('pgvector', () => {
  let database: PostgresDatabase
  let client: pg.Client
  beforeAll(async () => {
    database = await createPostgresDatabase()
    client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query(STAND_IN)
  })
  afterAll(async () => {
    await client.end()
    await database.drop()
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
        { id: 'a', content: 'x', kind: 'k1', n: 1, meta: { t: [1] }, distance: 0, similarity: 1 },
        { id: 'c', content: 'z', kind: null, n: 3, meta: null, distance: 0, similarity: 1 },
        { id: 'b', content: "it's", kind: 'k2', n: 5, meta: null, distance: 1, similarity: 0 },
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
