import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { createApp } from '../../src/app.ts'
import type { Clock } from '../../src/base/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { DatabaseAddress } from '../../src/database/open.ts'
import { createPostgresDatabase, hasPostgres } from './postgres.ts'

/** What came back: status, headers, and the JSON (undefined without a body). */
export interface Reply {
  status: number
  headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  body: any
}

export interface CallOptions {
  agent?: string | null
  headers?: Record<string, string>
  /** Sent as it is, instead of JSON. */
  raw?: string | Uint8Array
}

/** A server under test, in this process, on a port of its own. */
export interface MemoryApi {
  readonly url: string
  readonly dataDir: string
  readonly dialect: 'sqlite' | 'postgres'
  /** Of the database behind it, for tests that look below the API. */
  readonly address: DatabaseAddress
  /** Calls a path below `/v1`, or from the root when it starts with `//`; as agent `agent_test` unless told. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Reply>
  /** A new workspace's id. */
  workspace(fields?: Record<string, unknown>): Promise<string>
  /** The id of a new Memory. */
  imprint(ws: string, content: string, fields?: Record<string, unknown>): Promise<string>
  stop(): Promise<void>
}

export interface ApiOptions {
  dialect: 'sqlite' | 'postgres'
  postgresUrl?: string
  env?: Record<string, string>
  flags?: Record<string, unknown>
  /** Its mem.yaml. */
  file?: string
  /** Keeps the data of an earlier server. */
  dataDir?: string
  /** Its time; the system's when absent. */
  clock?: Clock
}

/** A clock that runs with the system's, and goes ahead of it when told. */
export function adjustableClock(): Clock & { advance(ms: number): void } {
  let ahead = 0
  return { now: () => Date.now() + ahead, advance: (ms) => void (ahead += ms) }
}

/** Starts a server over empty stores. */
export async function startMemoryApi(options: ApiOptions): Promise<MemoryApi> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'mem-test-'))
  const postgres: Record<string, string> =
    options.dialect === 'postgres'
      ? {
          MEM_METADATA_DRIVER: 'postgres',
          MEM_METADATA_DSN: options.postgresUrl ?? '',
          MEM_VECTOR_DRIVER: 'postgres',
          MEM_GRAPH_DRIVER: 'postgres',
          MEM_LEDGER_DRIVER: 'postgres',
        }
      : {}
  if (options.file !== undefined) writeFileSync(join(dataDir, 'mem.yaml'), options.file)
  const env = { HOME: dataDir, MEM_ADDR: '127.0.0.1:0', MEM_DATA_DIR: dataDir, ...postgres, ...options.env }
  const config = loadConfig({ env, flags: options.flags ?? {}, cwd: dataDir })
  const { clock } = options
  const app = await createApp({ ...config, telemetry: { ...config.telemetry, log_level: 'error' } }, clock && { clock })
  const url = await app.listen()

  const call = async (method: string, path: string, body?: unknown, how: CallOptions = {}): Promise<Reply> => {
    const agent = how.agent === undefined ? 'agent_test' : how.agent
    const sent = how.raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(url + (path.startsWith('//') ? path.slice(1) : `/v1${path}`), {
      method,
      headers: {
        ...(agent !== null && { 'Mem-Agent-Id': agent }),
        ...(sent !== undefined && { 'Content-Type': 'application/json' }),
        ...how.headers,
      },
      ...(sent !== undefined && { body: sent }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
  return {
    url,
    dataDir,
    dialect: options.dialect,
    address: { dialect: options.dialect, dsn: config.stores.metadata.dsn, synchronous: 'normal' },
    call,
    workspace: async (fields = {}) => (await call('POST', '/workspaces', { name: 'test', ...fields })).body.id,
    imprint: async (ws, content, fields = {}) =>
      (await call('POST', `/workspaces/${ws}/memories`, { content, ...fields })).body.memory_id,
    stop: async () => {
      await app.close()
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Runs the tests against a server on SQLite and one on PostgreSQL (skipped with a message where none can run). */
export function describeOnBoth(
  name: string,
  define: (api: () => MemoryApi) => void,
  options: Pick<ApiOptions, 'env' | 'flags' | 'file' | 'clock'> = {},
): void {
  for (const dialect of ['sqlite', 'postgres'] as const) {
    describe.skipIf(dialect === 'postgres' && !hasPostgres)(`${name} [${dialect}]`, () => {
      let api: MemoryApi | undefined
      let drop: (() => Promise<void>) | undefined
      beforeAll(async () => {
        const database = dialect === 'postgres' ? await createPostgresDatabase() : undefined
        drop = database?.drop
        api = await startMemoryApi({ dialect, ...(database && { postgresUrl: database.url }), ...options })
      })
      afterAll(async () => {
        await api?.stop()
        await drop?.()
      })
      define(() => {
        if (!api) throw new Error('the server is not up yet')
        return api
      })
    })
  }
}
