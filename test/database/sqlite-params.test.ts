import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openSqlite } from '../../src/database/sqlite.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-sqlite-'))
const db = openSqlite({ path: join(directory, 'mem.db'), synchronous: 'normal' })

afterAll(async () => {
  await db.close()
  rmSync(directory, { recursive: true })
})

const bound = (sql: string, ...params: (string | number | null)[]): Promise<unknown> => db.get(sql, params)

test('parameters are bound by their number, in whatever order they stand and however often', async () => {
  expect(await bound('SELECT $1 AS a, $2 AS b', 'x', null)).toEqual({ a: 'x', b: null })
  expect(await bound('SELECT $2 AS a, $1 AS b', 'x', 7)).toEqual({ a: 7, b: 'x' })
  expect(await bound('SELECT $1 AS a, $2 AS b, $1 AS c', 'x', 7)).toEqual({ a: 'x', b: 7, c: 'x' })
  const twelve = Array.from({ length: 12 }, (_, i) => i)
  const columns = twelve.map((i) => `$${i + 1} AS c${i}`)
  expect(await bound(`SELECT ${columns.join(', ')}`, ...twelve)).toEqual(
    Object.fromEntries(twelve.map((i) => [`c${i}`, i])),
  )
})

test('what no parameter asks for is refused, what is missing is told', async () => {
  await expect(bound('SELECT $1 AS a', 'x', 'y')).rejects.toThrow('Too many parameter values')
  await expect(bound('SELECT 1 AS a', 'x')).rejects.toThrow('Too many parameter values')
  await expect(bound('SELECT $1 AS a, $2 AS b', 'x')).rejects.toThrow('Too few parameter values')
  await expect(bound('SELECT $2 AS a, $1 AS b', 'x')).rejects.toThrow('Missing named parameter')
})
