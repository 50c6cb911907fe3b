import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { maskPassword } from '../../src/config/dsn.ts'
import { configError, makeWorkspace } from './workspace.ts'

const url = 'postgres://u:p@db/mem'

describe('resolveStores', () => {
  it('puts all sqlite seams into <data_dir>/mem.db, by any alias', () => {
    const { load, directory } = makeWorkspace()
    const { stores } = load({
      MEM_VECTOR_DRIVER: 'sqlite-vec',
      MEM_GRAPH_DRIVER: 'sqlite_graph',
      MEM_CONTENT_DRIVER: 'sqlite',
    })
    const database = { driver: 'sqlite', dsn: join(directory, 'data/mem.db') }
    expect(stores).toEqual({
      metadata: database,
      vector: database,
      graph: database,
      ledger: database,
      content: database,
    })
  })

  it.each(['pgvector', 'postgres'])('gives %s vectors and other postgres seams the metadata DSN', (driver) => {
    const { stores } = makeWorkspace().load({
      MEM_METADATA_DRIVER: 'postgres',
      MEM_METADATA_DSN: url,
      MEM_VECTOR_DRIVER: driver,
      MEM_GRAPH_DRIVER: 'postgres',
      MEM_LEDGER_DRIVER: 'postgres',
      MEM_LEDGER_DSN: 'postgresql://other/ledger',
    })
    expect(stores.vector).toEqual({ driver, dsn: url })
    expect(stores.graph).toEqual({ driver: 'postgres', dsn: url })
    expect(stores.ledger.dsn).toBe('postgresql://other/ledger')
  })

  it('has defaults for files, and nothing for none', () => {
    const { load, directory } = makeWorkspace()
    const { stores } = load({
      MEM_LEDGER_DRIVER: 'file',
      MEM_CONTENT_DRIVER: 'file',
      MEM_GRAPH_DRIVER: 'none',
      MEM_DATA_DIR: 'd',
    })
    expect(stores.ledger.dsn).toBe(join(directory, 'd/ledger.jsonl'))
    expect(stores.content).toEqual({ driver: 'file', dsn: join(directory, 'd/content') })
    expect(stores.graph).toBeUndefined()
    expect(load().stores.content).toBeUndefined()
  })

  it('takes s3://bucket/prefix for content', () => {
    const { stores } = makeWorkspace().load({
      MEM_CONTENT_DRIVER: 's3',
      MEM_CONTENT_DSN: 's3://bucket/prefix',
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
    })
    expect(stores.content).toEqual({ driver: 's3', dsn: 's3://bucket/prefix' })
  })

  it.each([
    [{ MEM_METADATA_DRIVER: 'postgres' }, 'metadata', 'is required (postgres://user@host/database)', 'postgres'],
    [{ MEM_VECTOR_DRIVER: 'pgvector' }, 'vector', 'is required (postgres://user@host/database)', 'pgvector'],
    [{ MEM_LEDGER_DRIVER: 'postgres', MEM_LEDGER_DSN: '/l.db' }, 'ledger', 'must be a postgres:// URL', 'postgres'],
    [{ MEM_METADATA_DSN: url }, 'metadata', 'must be a path', 'sqlite'],
    [{ MEM_METADATA_DSN: ':memory:' }, 'metadata', 'must be a path', 'sqlite'],
    [{ MEM_LEDGER_DRIVER: 'file', MEM_LEDGER_DSN: '/l.db' }, 'ledger', 'must be a .jsonl path', 'file'],
    [{ MEM_CONTENT_DRIVER: 's3' }, 'content', 'is required (s3://bucket/prefix)', 's3'],
    [{ MEM_CONTENT_DRIVER: 's3', MEM_CONTENT_DSN: '/x' }, 'content', 'must be s3://bucket/prefix', 's3'],
    [{ MEM_CONTENT_DRIVER: 'file', MEM_CONTENT_DSN: 's3://x' }, 'content', 'must be a path', 'file'],
  ])('refuses %o', (env, seam, why, driver) => {
    const error = configError(() => makeWorkspace().load(env))
    expect(error.message).toBe(`storage.${seam}_dsn ${why}, because storage.${seam}_driver is ${driver}`)
    expect(error.key).toBe(`storage.${seam}_dsn`)
  })
})

it.each([
  ['postgres://u:secret@h/db', 'postgres://u:***@h/db'],
  ['postgres://:se:cr@et@h/db?sslmode=on', 'postgres://:***@h/db?sslmode=on'],
  ['postgres://u@h/db?password=secret&x=1', 'postgres://u@h/db?password=***&x=1'],
  ['postgres://u@h:5432/db', 'postgres://u@h:5432/db'],
  ['s3://id:secret@bucket/p', 's3://id:***@bucket/p'],
  ['/data/a:b@c.db', '/data/a:b@c.db'],
])('maskPassword %s', (dsn, masked) => {
  expect(maskPassword(dsn)).toBe(masked)
})
