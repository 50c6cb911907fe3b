import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../src/database/database.ts'
import { openSqlite } from '../../src/database/sqlite.ts'

const ways = [
  { synchronous: 'full', flushesAtOnce: false },
  { synchronous: 'full', flushesAtOnce: true },
  { synchronous: 'normal', flushesAtOnce: true },
] as const

describe.each(ways)('transactions of SQLite: $synchronous, flushes at once: $flushesAtOnce', (way) => {
  let directory: string
  let db: Database

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'mem-sqlite-'))
    db = openSqlite({ path: join(directory, 'mem.db'), ...way })
    await db.run('CREATE TABLE note (text TEXT NOT NULL)')
  })

  afterEach(async () => {
    await db.close()
    rmSync(directory, { recursive: true })
  })

  const insert = (text: string, fails = false): Promise<void> =>
    db.transaction(async (tx) => {
      await tx.run('INSERT INTO note (text) VALUES ($1)', [text])
      if (fails) throw new Error(`${text} is not wanted`)
    })

  const texts = async (): Promise<string[]> =>
    (await db.all<{ text: string }>('SELECT text FROM note ORDER BY rowid')).map((row) => row.text)

  test('nobody else may read the files', () => {
    const modes = ['', '-wal', '-shm'].map((end) => statSync(join(directory, `mem.db${end}`)).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600, 0o600])
  })

  test('a closed one refuses', async () => {
    const closed = openSqlite({ path: join(directory, 'closed.db'), ...way })
    await closed.close()
    await expect(closed.run('CREATE TABLE note (text TEXT NOT NULL)')).rejects.toThrow('not open')
  })

  test('one alone that throws is rolled back, and the next one goes on', async () => {
    await expect(insert('a', true)).rejects.toThrow('a is not wanted')
    expect(await texts()).toEqual([])
    await insert('b')
    expect(await texts()).toEqual(['b'])
  })

  test('of those that share a commit only the one that throws is rolled back', async () => {
    const ends = await Promise.allSettled([insert('a'), insert('b', true), insert('c')])
    expect(ends.map((end) => end.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await texts()).toEqual(['a', 'c'])
  })

  test('what a part of one still wants to write when another part has failed is refused, and is in no other', async () => {
    let wanted: Promise<unknown> | undefined
    const failed = db.transaction((tx) => {
      const late = async (): Promise<void> => {
        for (let i = 0; i < 20; i++) await tx.all('SELECT 1')
        await tx.run('INSERT INTO note (text) VALUES ($1)', ['late'])
      }
      wanted = late()
      return Promise.all([wanted, Promise.reject(new Error('no'))])
    })
    const ended = [failed, insert('b'), insert('c')]
    expect((await Promise.allSettled(ended)).map(({ status }) => status)).toEqual([
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    await expect(wanted).rejects.toThrow('the transaction is over')
    expect(await texts()).toEqual(['b', 'c'])
  })

  test('a statement that fails takes back all of one alone', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.run('INSERT INTO note (text) VALUES ($1)', ['a'])
      await tx.run('INSERT INTO note (text) VALUES ($1)', [null])
    })
    await expect(failing).rejects.toThrow('NOT NULL')
    expect(await texts()).toEqual([])
  })

  test('what is answered is there for others', async () => {
    await insert('a')
    const other = openSqlite({ path: join(directory, 'mem.db'), synchronous: 'normal', readonly: true })
    expect(await other.all('SELECT text FROM note')).toEqual([{ text: 'a' }])
    await other.close()
  })
})
