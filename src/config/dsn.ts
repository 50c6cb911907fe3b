import { join, resolve } from 'node:path'
import { ConfigError } from './errors.ts'
import type { Values } from './schema.ts'

type Storage = Values['storage']

/** Where a seam keeps its rows or objects; the dsn is an absolute path, a `postgres://` or an `s3://` URL. */
export interface Store<Driver extends string> {
  driver: Driver
  dsn: string
}

/** Every seam with its driver by canonical name. Equal dsns are one database. Contract: memory.md 9.1. */
export interface Stores {
  metadata: Store<'sqlite' | 'postgres'>
  /** `postgres` is the exact index over rows in PostgreSQL, for servers without pgvector. */
  vector: Store<'sqlite' | 'pgvector' | 'postgres'>
  graph: Store<'sqlite' | 'postgres'> | undefined
  ledger: Store<'sqlite' | 'postgres' | 'file'>
  content: Store<'sqlite' | 'postgres' | 'file' | 's3'> | undefined
}

type Seam = keyof Stores

/** Gives each seam its DSN, the defaults included; paths start from `cwd`.
 *  @throws ConfigError naming `storage.<seam>_dsn` when it is missing or does not fit the driver. */
export function resolveStores(storage: Storage, cwd: string): Stores {
  const { metadata_driver, vector_driver, graph_driver, ledger_driver, content_driver } = storage
  const store = <Driver extends string>(seam: Seam, driver: Driver): Store<Driver> => ({
    driver,
    dsn: resolveDsn(storage, seam, driver, cwd),
  })
  return {
    metadata: store('metadata', metadata_driver),
    vector: store('vector', vector_driver === 'sqlite-vec' ? 'sqlite' : vector_driver),
    graph:
      graph_driver === 'none' ? undefined : store('graph', graph_driver === 'sqlite_graph' ? 'sqlite' : graph_driver),
    ledger: store('ledger', ledger_driver),
    content: content_driver === 'none' ? undefined : store('content', content_driver),
  }
}

function resolveDsn(storage: Storage, seam: Seam, driver: string, cwd: string): string {
  const dsn = storage[`${seam}_dsn`]
  const unusable = (why: string): ConfigError => {
    const key = `storage.${seam}_dsn`
    return new ConfigError(key, `${key} ${why}, because storage.${seam}_driver is ${driver}`)
  }
  if (driver === 'postgres' || driver === 'pgvector') {
    const url = dsn ?? (storage.metadata_driver === 'postgres' ? storage.metadata_dsn : undefined)
    if (url === undefined) throw unusable('is required (postgres://user@host/database)')
    if (!isPostgresUrl(url)) throw unusable('must be a postgres:// URL')
    return url
  }
  if (driver === 's3') {
    if (dsn === undefined) throw unusable('is required (s3://bucket/prefix)')
    if (!/^s3:\/\/[a-z0-9][a-z0-9._-]{2,62}(\/|$)/i.test(dsn)) throw unusable('must be s3://bucket/prefix')
    return dsn
  }
  const path = dsn ?? join(storage.data_dir, defaultFile(seam, driver))
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path) || path.startsWith(':')) throw unusable('must be a path')
  if (seam === 'ledger' && driver === 'file' && !path.endsWith('.jsonl')) throw unusable('must be a .jsonl path')
  return resolve(cwd, path)
}

function defaultFile(seam: Seam, driver: string): string {
  if (driver === 'sqlite') return 'mem.db'
  return seam === 'ledger' ? 'ledger.jsonl' : 'content'
}

const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//.test(text) && URL.canParse(text)

/** The same text with the password of a URL as `***`. */
export const maskPassword = (text: string): string =>
  text.replace(/^([a-z][a-z0-9+.-]*:\/\/[^:@/]*):.*@/is, '$1:***@').replace(/([?&](?:ssl)?password=)[^&#]*/gi, '$1***')
