import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { systemClock, type Clock } from './base/clock.ts'
import { errorText } from './base/errors.ts'
import { createIdSource, type IdSource } from './base/ids.ts'
import { createLogger } from './base/log.ts'
import { renderMetrics } from './base/metrics.ts'
import { packageRoot } from './base/package-root.ts'
import { processMetrics } from './base/process-metrics.ts'
import { parseAddress } from './config/address.ts'
import { maskPassword, type Store } from './config/dsn.ts'
import { ConfigError } from './config/errors.ts'
import { keyTag } from './config/key-file.ts'
import type { Config } from './config/load.ts'
import { bindsLoopback, checkStart } from './config/start-matrix.ts'
import { printableConfig } from './config/print.ts'
import { readTls } from './config/tls.ts'
import { mountConsole } from './console/index.ts'
import type { Database } from './database/database.ts'
import { migrate, MigrationError } from './database/migrate.ts'
import { openDatabase, type DatabaseAddress } from './database/open.ts'
import { replaceCertificate } from './http/certificate.ts'
import { createListener } from './http/listener.ts'
import { measureRequests } from './http/metrics.ts'
import type { SessionParts } from './mcp/session.ts'
import { createEmbedder } from './memory/embedder/registry.ts'
import { memoryMetrics } from './memory/metrics.ts'
import { mountMemory, mountMetrics } from './memory/routes/index.ts'
import { LocalSearch } from './memory/search/local.ts'
import { builtModule, RemoteSearch } from './memory/search/remote.ts'
import { SearchHost } from './memory/search/host.ts'
import type { SeamDatabases } from './memory/seams.ts'
import { MemoryService } from './memory/service.ts'
import { createCellSource } from './memory/store/cell-source.ts'

/** Cells that the indexes of a thread hold together, at most; some 2.3 KB each. */
const LOCAL_CELLS = 200_000
const WORKER_CELLS = 1_500_000
const SHUTDOWN_MS = 15_000

export interface App {
  /** Binds the configured address and gives the URL. */
  listen(): Promise<string>
  /** Lets running requests end, 15 s at most, then closes the stores. */
  close(): Promise<void>
  /** Serves the certificate that the files hold now, without dropping a connection; keeps the old one when it is no good. */
  reloadCertificate(): Promise<void>
}

/**
 * Puts the server together: configuration, databases, services, listener; a test may set its time.
 * @throws ConfigError when a store is unusable.
 */
export async function createApp(config: Config, { clock = systemClock }: { clock?: Clock } = {}): Promise<App> {
  const warnings = checkStart(config)
  const memory = await createMemory(config, clock)
  const { service, log, ids } = memory
  for (const warning of warnings) log.warn({}, warning)
  const { server } = config
  let tls = await readTls(config, clock.now())
  const access = {
    apiKey: config.apiKey,
    apiKeyId: config.apiKey === undefined ? undefined : keyTag(config.apiKey),
    guardLoopback: bindsLoopback(config) && !server.allow_no_auth,
    timeoutMs: server.timeout,
  }
  const allowedOrigins = server.allowed_origins
  const listener = createListener({ log, ids, timeoutMs: server.timeout, allowedOrigins, tls })
  const multiTenant = server.mode === 'multi-tenant'
  const figures = [
    ...measureRequests(listener),
    ...memoryMetrics(service.seams, memory.index, clock),
    ...processMetrics(),
  ]
  mountMemory(listener, service, { ...access, allowedOrigins, multiTenant })
  mountMetrics(listener, () => renderMetrics(figures))
  mountConsole(listener, service, clock, {
    ...access,
    configuration: printableConfig(config),
    get certificate() {
      return tls?.cert
    },
  })
  if (server.mcp_enable) {
    const { mountMcp } = await import('./mcp/http.ts')
    mountMcp(listener, await toolParts(config, memory), { apiKeyId: access.apiKeyId, multiTenant })
  }
  return {
    listen: async () => {
      const url = await bind(listener, config)
      service.start()
      log.info({ url, ...(config.apiKey !== undefined && { api_key_tag: keyTag(config.apiKey) }) }, 'listening')
      return url
    },
    close: async () => {
      await within(SHUTDOWN_MS, listener.close())
      await memory.close()
    },
    reloadCertificate: async () => {
      try {
        tls = await readTls(config, clock.now())
        if (tls) replaceCertificate(listener, tls)
        log.info({}, 'the certificate was read again')
      } catch (error) {
        log.error({ reason: errorText(error) }, 'the certificate could not be read again; the old one stays')
      }
    },
  }
}

/**
 * Serves the tools over standard streams, until the input ends, on the stores themselves. Contract: memory.md 12.1.
 * @throws ConfigError when a store is unusable.
 */
export async function serveTools(
  config: Config,
  input: AsyncIterable<Uint8Array>,
  write: (line: string) => unknown,
): Promise<void> {
  const memory = await createMemory(config, systemClock)
  try {
    const { Session } = await import('./mcp/session.ts')
    const { serveLines } = await import('./mcp/stdio.ts')
    const { apiKey } = config
    if (apiKey === undefined) memory.log.warn({}, 'no API key: whoever starts this program may read and write')
    const peer = apiKey === undefined ? { authorized: true } : { authorized: false, apiKeyId: keyTag(apiKey) }
    memory.service.start()
    await serveLines(new Session(await toolParts(config, memory), peer), input, write)
  } finally {
    await memory.close()
  }
}

export interface Memory {
  service: MemoryService
  index: SearchHost
  ids: IdSource
  log: ReturnType<typeof createLogger>
  close(): Promise<void>
}

/** The memory service over the stores of the configuration; its background work is not started. */
export async function createMemory(config: Config, clock: Clock): Promise<Memory> {
  const log = createLogger(config.telemetry.log_level, config.telemetry.log_format)
  const stores = await openStores(config)
  const ids = createIdSource(clock)
  const index = createSearch(config, stores.databases)
  const service = new MemoryService({
    databases: stores.databases,
    index,
    createEmbedder: (model) => createEmbedder(model, embedderSettings(config)),
    settings: {
      embedding: { model: config.embedding.model, inlineTimeoutMs: config.embedding.inline_timeout },
      limits: config.limits,
      versionRetentionDays: config.storage.version_retention_days,
      rejectInactiveAgents: config.server.reject_inactive_agents,
    },
    clock,
    ids,
    log,
  })
  const close = async (): Promise<void> => {
    await service.close()
    await index.close()
    await stores.close()
  }
  return { service, index, ids, log, close }
}

async function toolParts(config: Config, { service, ids, log }: Memory): Promise<SessionParts> {
  const { MemoryTools } = await import('./memory/tools/index.ts')
  return { tools: new MemoryTools(service, ids, config.server.timeout), log, apiKey: config.apiKey }
}

/** Small workspaces are searched in this thread, large ones in a worker with connections of its own. */
function createSearch(config: Config, { metadata, vector }: SeamDatabases): SearchHost {
  const source = createCellSource(metadata, vector)
  const sourceOptions = {
    metadata: addressOf(config, config.stores.metadata),
    vector: addressOf(config, config.stores.vector),
  }
  return new SearchHost(
    source,
    new LocalSearch(source, LOCAL_CELLS),
    new RemoteSearch({ sourceModule: builtModule('cell-source'), sourceOptions, maxCells: WORKER_CELLS }),
  )
}

async function bind(listener: FastifyInstance, config: Config): Promise<string> {
  const { addr } = config.server
  const { host = '', port = 7777 } = parseAddress(addr) ?? {}
  try {
    return await listener.listen({ host: host === '' ? '::' : host, port })
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error
    throw new ConfigError('server.addr', `cannot listen on ${addr}: ${error.message}`)
  }
}

/** Resolves with the work, or when time is up. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([work, new Promise((done) => (timer = setTimeout(done, ms)))])
  clearTimeout(timer)
}

/** The databases of the memory service, each opened and migrated once, however many seams are in it. */
export async function openStores(config: Config): Promise<{ databases: SeamDatabases; close(): Promise<void> }> {
  const opened = new Map<string, Promise<Database>>()
  const open = (seam: string, store: Store<string>): Promise<Database> => {
    const known = opened.get(store.dsn) ?? openMigrated(config, seam, store)
    opened.set(store.dsn, known)
    return known
  }
  mkdirSync(config.storage.data_dir, { recursive: true, mode: 0o700 })
  const { metadata, vector, graph, ledger, content } = config.stores
  if (content) throw unavailable('content', content.driver)
  if (vector.driver === 'pgvector') throw unavailable('vector', vector.driver)
  if (ledger.driver === 'file') throw unavailable('ledger', ledger.driver)
  return {
    databases: {
      metadata: await open('metadata', metadata),
      vector: await open('vector', vector),
      graph: graph && (await open('graph', graph)),
      ledger: await open('ledger', ledger),
    },
    close: async () => {
      for (const database of opened.values()) await (await database).close()
    },
  }
}

const unavailable = (seam: string, driver: string): ConfigError =>
  new ConfigError(`storage.${seam}_driver`, `storage.${seam}_driver ${driver} is not part of this version`)

/** Where a database store is. */
export const addressOf = (config: Config, store: Store<string>): DatabaseAddress => ({
  dialect: store.driver === 'sqlite' ? 'sqlite' : 'postgres',
  dsn: store.dsn,
  synchronous: config.storage.sqlite_synchronous,
})

async function openMigrated(config: Config, seam: string, store: Store<string>): Promise<Database> {
  const key = `storage.${seam}_dsn`
  try {
    const database = openDatabase(addressOf(config, store))
    await migrate(database, 'memory', join(packageRoot, 'migrations/memory'), systemClock.now())
    return database
  } catch (error) {
    if (error instanceof MigrationError) throw new ConfigError(key, `${maskPassword(store.dsn)}: ${error.message}`)
    throw new ConfigError(key, `${key} ${maskPassword(store.dsn)} cannot be used: ${maskPassword(errorText(error))}`)
  }
}

/** The section `embedding` as the embedders want it. */
export function embedderSettings({ embedding }: Config): Parameters<typeof createEmbedder>[1] {
  const { openai, voyage, gemini } = embedding.providers
  const settings = ({ api_key, base_url }: { api_key?: string | undefined; base_url?: string | undefined }) => ({
    ...(api_key !== undefined && { apiKey: api_key }),
    ...(base_url !== undefined && { baseUrl: base_url }),
  })
  return {
    model: embedding.model,
    ...settings(embedding),
    providers: { openai: settings(openai), voyage: settings(voyage), gemini: settings(gemini) },
    timeoutMs: embedding.timeout,
    batchSize: embedding.batch_size,
    queryPrefix: embedding.query_prefix,
    documentPrefix: embedding.document_prefix,
    ...(embedding.local_dir !== undefined && { localDir: embedding.local_dir }),
  }
}
