import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { createIdSource } from '../../src/base/ids.ts'
import { createLogger } from '../../src/base/log.ts'
import { packageRoot } from '../../src/base/package-root.ts'
import type { Database } from '../../src/database/database.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openDatabase } from '../../src/database/open.ts'
import { createEmbedder } from '../../src/memory/embedder/registry.ts'
import type { Workspace } from '../../src/memory/model.ts'
import { LocalSearch } from '../../src/memory/search/local.ts'
import { MemoryService } from '../../src/memory/service.ts'
import { createCellSource } from '../../src/memory/store/cell-source.ts'
import { Bodies } from '../../src/memory/store/content/bodies.ts'
import { vectorRows } from '../../src/memory/store/vector/rows.ts'

const EMBEDDING = {
  model: 'hash:default',
  timeoutMs: 30_000,
  batchSize: 64,
  queryPrefix: '',
  documentPrefix: '',
  providers: {},
}

/** The service over a file, in this process: to fill stores faster than over HTTP. */
export interface InProcess {
  db: Database
  service: MemoryService
  workspace: Workspace
  /** Stores the texts as one Memory each, side by side, so that they share a commit. */
  imprint(texts: readonly string[], collectionId?: string): Promise<void>
  close(): Promise<void>
}

/** With a workspace of this model. */
export async function openInProcess(path: string, embedding_model = EMBEDDING.model): Promise<InProcess> {
  const db = openDatabase({ dialect: 'sqlite', dsn: path, synchronous: 'normal' })
  await migrate(db, 'memory', join(packageRoot, 'migrations/memory'), systemClock.now())
  const databases = { metadata: db, vector: db, vectors: vectorRows, graph: db, ledger: db }
  const service = new MemoryService({
    databases,
    index: new LocalSearch(
      createCellSource(db, db, vectorRows, new Bodies(db, undefined, createLogger('error', 'json'))),
      0,
    ),
    createEmbedder: (model) => createEmbedder(model, EMBEDDING),
    settings: {
      embedding: { model: EMBEDDING.model, inlineTimeoutMs: 10_000 },
      limits: { out_edges: 0, batch_edges: 0, memories_per_workspace: 0, workspaces: 0 },
      versionRetentionDays: 0,
      rejectInactiveAgents: false,
    },
    clock: systemClock,
    ids: createIdSource(systemClock),
    log: createLogger('error', 'json'),
  })
  const caller = () => ({
    requestId: 'req_bench',
    startedAt: performance.now(),
    agentId: 'agent_bench',
    signal: new AbortController().signal,
  })
  const workspace = await service.workspaces.create(caller(), { name: 'bench', embedding_model })
  return {
    db,
    service,
    workspace,
    imprint: async (texts) => {
      await Promise.all(texts.map((content) => service.imprint.run(caller(), workspace, { content })))
    },
    close: async () => {
      await service.close()
      await db.close()
    },
  }
}
