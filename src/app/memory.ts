import type { Clock } from '../base/clock.ts'
import { createIdSource, type IdSource } from '../base/ids.ts'
import { createLogger } from '../base/log.ts'
import { builtModule } from '../base/package-root.ts'
import { startTracing } from '../base/trace.ts'
import { version } from '../base/version.ts'
import type { Config } from '../config/load.ts'
import { createEmbedder } from '../memory/embedder/registry.ts'
import type { Logger } from '../memory/ports.ts'
import { SearchHost } from '../memory/search/host.ts'
import { LocalSearch } from '../memory/search/local.ts'
import { RemoteSearch } from '../memory/search/remote.ts'
import type { SeamDatabases } from '../memory/seams.ts'
import { MemoryService } from '../memory/service.ts'
import { createCellSource } from '../memory/store/cell-source.ts'
import { Bodies } from '../memory/store/content/bodies.ts'
import { addressOf } from './database.ts'
import { contentAddress, openStores, vectorIndexBuilder } from './stores.ts'

/** Cells that the indexes of a thread hold together, at most; some 2.3 KB each, and up to 16 MB of packed vectors a thread. */
const LOCAL_CELLS = 200_000
const WORKER_CELLS = 1_500_000
/** A process with one client holds up nobody else: the way to a worker and back takes longer than searching this many. */
const INLINE_CELLS_ALONE = 50_000

export interface Memory {
  service: MemoryService
  index: SearchHost
  ids: IdSource
  log: ReturnType<typeof createLogger>
  close(): Promise<void>
}

/**
 * The memory service over the stores of the configuration; its background work is not started. One that serves `oneClient`
 * searches and writes to the disk without threads, which would only help others.
 */
export async function createMemory(config: Config, clock: Clock, oneClient = false): Promise<Memory> {
  const log = createLogger(config.telemetry.log_level, config.telemetry.log_format)
  if (startTracing(version)) log.info({}, 'tracing with OpenTelemetry')
  const stores = await openStores(config, clock, log, oneClient)
  const ids = createIdSource(clock)
  const index = createSearch(config, stores.databases, log, oneClient ? INLINE_CELLS_ALONE : undefined)
  const service = new MemoryService({
    databases: stores.databases,
    index,
    createEmbedder: (model) => createEmbedder(model, embedderSettings(config)),
    buildVectorIndexes:
      config.stores.vector.driver === 'pgvector' ? vectorIndexBuilder(config, stores.databases.vector) : undefined,
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

/** Small workspaces are searched in this thread, large ones in a worker with connections of its own. */
function createSearch(config: Config, databases: SeamDatabases, log: Logger, inlineCells?: number): SearchHost {
  const { metadata, vector, vectors, content } = databases
  const source = createCellSource(metadata, vector, vectors, new Bodies(metadata, content, log))
  const sourceOptions = {
    metadata: addressOf(config, config.stores.metadata),
    vector: addressOf(config, config.stores.vector),
    vectorDriver: config.stores.vector.driver,
    content: config.stores.content && contentAddress(config, config.stores.content),
  }
  return new SearchHost(
    source,
    new LocalSearch(source, LOCAL_CELLS),
    new RemoteSearch({ sourceModule: builtModule('cell-source').href, sourceOptions, maxCells: WORKER_CELLS }),
    inlineCells,
  )
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
