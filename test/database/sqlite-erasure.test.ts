import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SqliteDriver } from '../../src/database/sqlite-driver.ts'
import { Erasure } from '../../src/database/sqlite-erasure.ts'
import { randomSource } from '../memory/search/random-vectors.ts'

const SECRET = 'quizzaciously'

describe('Erasure', () => {
  let directory = ''
  let path = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'mem-test-erasure-'))
    path = join(directory, 'mem.db')
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  const open = (): Sqlite.Database => {
    const db = new SqliteDriver(path)
    db.pragma('journal_mode = WAL')
    db.pragma('secure_delete = ON')
    return db
  }

  const hasSecret = (): boolean =>
    [path, `${path}-wal`].some((file) => existsSync(file) && readFileSync(file).includes(SECRET))

  /** Rows of every size in random order, every second one secret; then all secret ones are deleted. */
  function fillAndDelete(db: Sqlite.Database, random: () => number): number {
    db.exec(
      'CREATE TABLE IF NOT EXISTS note (word TEXT, body TEXT, mark INTEGER DEFAULT 2, number INTEGER PRIMARY KEY)',
    )
    db.exec('CREATE INDEX IF NOT EXISTS by_word ON note (word, mark, body)')
    const insert = db.prepare('INSERT INTO note (word, body) VALUES (?, ?)')
    for (let i = 0; i < 3000; i++) {
      const filler = 'rye bread '.repeat(Math.floor(random() ** 6 * 600))
      insert.run(`${random()}`, i % 2 === 0 ? `${SECRET} ${filler}` : filler)
      if (random() < 0.3) db.prepare('DELETE FROM note WHERE word > ? LIMIT 1').run(`${random()}`)
    }
    for (const { number } of db.prepare('SELECT number FROM note WHERE body LIKE ?').all(`${SECRET}%`) as {
      number: number
    }[]) {
      db.prepare('DELETE FROM note WHERE number = ?').run(number)
    }
    return (db.prepare('SELECT count(*) AS n FROM note').get() as { n: number }).n
  }

  it('takes the copies that secure_delete leaves, and nothing else', async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const db = open()
      const rows = fillAndDelete(db, randomSource(seed))
      db.pragma('wal_checkpoint(TRUNCATE)')
      expect(hasSecret(), 'else there is nothing to test').toBe(true)
      await new Erasure(db, path).run()
      expect(hasSecret()).toBe(false)
      expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
      expect(db.prepare('SELECT count(*) AS n FROM note WHERE body NOT LIKE ?').get(`${SECRET}%`)).toEqual({ n: rows })
      db.close()
    }
  })

  it.each(['this', 'another'])('keeps pages in the memory of %s connection from bringing them back', async (which) => {
    const db = open()
    fillAndDelete(db, randomSource(9))
    const writer = which === 'this' ? db : open()
    writer.prepare('SELECT sum(length(body)) FROM note NOT INDEXED').get()
    writer.prepare('SELECT sum(length(body)) FROM note INDEXED BY by_word').get()
    await new Erasure(db, path).run()
    writer.prepare('UPDATE note SET mark = mark + 1').run() // every page, where it lies
    writer.pragma('wal_checkpoint(PASSIVE)')
    expect(hasSecret()).toBe(false)
    expect(writer.pragma('integrity_check', { simple: true })).toBe('ok')
    if (writer !== db) writer.close()
    db.close()
  })

  it('fails when a reader holds the log, and changes nothing', async () => {
    const db = open()
    db.pragma('busy_timeout = 10')
    fillAndDelete(db, randomSource(10))
    const reader = open()
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM note').get()
    db.prepare("INSERT INTO note (word, body) VALUES ('w', 'b')").run()
    await expect(new Erasure(db, path).run()).rejects.toThrow('the log is in use')
    reader.exec('COMMIT')
    await new Erasure(db, path).run()
    expect(hasSecret()).toBe(false)
    reader.close()
    db.close()
  })

  it('waits for a transaction of its connection', async () => {
    const db = open()
    fillAndDelete(db, randomSource(11))
    db.exec('BEGIN')
    const erased = new Erasure(db, path).run()
    setImmediate(() => db.exec('COMMIT'))
    await erased
    expect(hasSecret()).toBe(false)
    db.close()
  })
})
