import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPgvector, type PgvectorServer } from './pgvector.ts'

let server: PgvectorServer
beforeAll(async () => {
  server = await startPgvector()
})
afterAll(() => server.stop())

test('connections take turns, and each has prepared statements of its own', async () => {
  const pool = new pg.Pool({ connectionString: server.url, max: 4 })
  const echo = (value: number) => pool.query({ name: 'echo', text: 'SELECT $1::int AS value', values: [value] })
  const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => echo(i)))
  expect(answers.map(({ rows }) => rows[0].value)).toEqual(Array.from({ length: 12 }, (_, i) => i))

  const order: string[] = []
  const client = await pool.connect()
  await client.query('BEGIN')
  const other = pool
    .query(`SELECT '[1,2]'::vector <-> '[1,3]' AS distance`)
    .then(({ rows }) => order.push(rows[0].distance))
  await expect(client.query('SELECT nonsense')).rejects.toThrow('nonsense')
  await client.query('ROLLBACK').then(() => order.push('rolled back'))
  client.release()
  await other
  expect(order).toEqual(['rolled back', 1])
  await pool.end()
})

test('a connection that breaks off leaves no transaction behind', async () => {
  const client = new pg.Client({ connectionString: server.url })
  client.on('error', () => undefined)
  await client.connect()
  await client.query('BEGIN')
  await client.end()
  const next = new pg.Client({ connectionString: server.url })
  await next.connect()
  expect((await next.query('VACUUM')).command).toBe('VACUUM')
  await next.end()
})
