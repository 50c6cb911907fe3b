import type { Clock } from '../base/clock.ts'
import type { IdSource } from '../base/ids.ts'
import { Agents } from './agents.ts'
import { AutoLink } from './auto-link.ts'
import { Edits } from './edit.ts'
import type { Embedder } from './embedder/types.ts'
import { Embedding, type EmbeddingSettings } from './embedding.ts'
import { EmbedQueue } from './embed-queue.ts'
import { MemoryError, notFound } from './errors.ts'
import { Forget } from './forget.ts'
import { Health } from './health.ts'
import { Imprint } from './imprint.ts'
import { Links } from './links.ts'
import { Memories } from './memories.ts'
import { MigrateEmbeddings } from './migrate-embeddings.ts'
import type { Workspace } from './model.ts'
import { Mutations } from './mutation.ts'
import { Orphans } from './orphans.ts'
import { Outbox } from './outbox.ts'
import type { Logger, SearchIndex } from './ports.ts'
import type { Limits } from './quota.ts'
import { Recall } from './recall.ts'
import { Seams, type SeamDatabases } from './seams.ts'
import { Bodies } from './store/content/bodies.ts'
import { findWorkspace } from './store/workspaces.ts'
import { Sweeper } from './sweeper.ts'
import { VectorUpkeep } from './vector-upkeep.ts'
import { Graph } from './walk.ts'
import { warmUp } from './warm-up.ts'
import { Workspaces } from './workspaces.ts'

export interface MemorySettings {
  embedding: EmbeddingSettings
  limits: Limits
  /** Superseded versions are kept this long; 0 = for ever. */
  versionRetentionDays: number
  rejectInactiveAgents: boolean
}

export interface MemoryParts {
  databases: SeamDatabases
  index: SearchIndex
  createEmbedder: (model: string) => Embedder
  /** Where a database searches vectors by itself: builds the indexes that it lacks. */
  buildVectorIndexes?: ((signal: AbortSignal) => Promise<void>) | undefined
  settings: MemorySettings
  clock: Clock
  ids: IdSource
  log: Logger
}

/**
 * The memory service: its capabilities over one set of stores. Every surface (routes, tools, console) calls these and
 * nothing below them.
 */
export class MemoryService {
  readonly seams: Seams
  readonly embedding: Embedding
  readonly mutations: Mutations
  readonly workspaces: Workspaces
  readonly agents: Agents
  readonly memories: Memories
  readonly imprint: Imprint
  readonly edits: Edits
  readonly forget: Forget
  readonly links: Links
  readonly graph: Graph
  readonly recall: Recall
  readonly health: Health
  readonly migrateEmbeddings: MigrateEmbeddings
  readonly sweeper: Sweeper
  readonly #queue: EmbedQueue
  readonly #outbox: Outbox
  readonly #vectorUpkeep: VectorUpkeep | undefined
  readonly #index: SearchIndex
  readonly #log: Logger
  readonly #closing = new AbortController()
  /** The workspace asked for last, and the version of the database that it is of. */
  #lastAsked: { workspace: Workspace; version: number | undefined } | undefined

  constructor({ databases, index, createEmbedder, buildVectorIndexes, settings, clock, ids, log }: MemoryParts) {
    const { limits } = settings
    this.#outbox = new Outbox(databases, clock, ids('proc_'), log)
    const bodies = new Bodies(databases.metadata, databases.content, log)
    const seams = new Seams(databases, this.#outbox, bodies)
    const embedding = new Embedding(settings.embedding, createEmbedder, log)
    const mutations = new Mutations(seams, clock, ids)
    const autoLink = new AutoLink(seams, index, ids, limits, log)
    const queue = new EmbedQueue({ seams, mutations, embedding, autoLink, clock, ids, log })
    this.#index = index
    this.#log = log
    this.seams = seams
    this.embedding = embedding
    this.mutations = mutations
    this.#queue = queue
    this.#vectorUpkeep = buildVectorIndexes && new VectorUpkeep(buildVectorIndexes, log)
    const orphans = databases.content && new Orphans({ store: databases.content, seams, mutations, clock, ids, log })
    this.sweeper = new Sweeper(seams, clock, settings.versionRetentionDays, log, orphans)
    this.workspaces = new Workspaces(mutations, ids, embedding, limits)
    this.agents = new Agents(seams, mutations, clock, settings.rejectInactiveAgents)
    this.memories = new Memories(seams.metadata, bodies, embedding, clock, settings.versionRetentionDays)
    this.imprint = new Imprint({ seams, mutations, ids, embedding, queue, autoLink, limits })
    this.edits = new Edits({ seams, mutations, ids, embedding, queue })
    this.forget = new Forget(seams, mutations, ids)
    this.links = new Links(seams, mutations, ids, limits)
    this.graph = new Graph(seams, clock)
    this.recall = new Recall({ seams, index, embedding, graph: this.graph, log })
    this.health = new Health(seams)
    this.migrateEmbeddings = new MigrateEmbeddings({ seams, mutations, embedding, queue, log })
  }

  /** Starts the work that goes on beside requests: deliveries and jobs left by an earlier run, sweeping. */
  start(): void {
    void this.#outbox.deliver()
    this.#queue.wake()
    this.sweeper.start()
    this.#vectorUpkeep?.start()
    const { seams, embedding, recall } = this
    void warmUp({ seams, embedding, recall, index: this.#index, log: this.#log, signal: this.#closing.signal })
  }

  /** Ends background work; the databases belong to whoever opened them. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.sweeper.close()
    await this.#vectorUpkeep?.close()
    await this.#queue.close()
    await this.#outbox.close()
  }

  /** @throws not_found 404. */
  async requireWorkspace(id: string): Promise<Workspace> {
    const version = this.seams.metadata.version()
    const known = this.#lastAsked
    if (version !== undefined && known?.version === version && known.workspace.id === id) return known.workspace
    const workspace = await findWorkspace(this.seams.metadata, id)
    if (!workspace) throw notFound('workspace', id)
    this.#lastAsked = { workspace, version }
    return workspace
  }

  /** @throws capability_unavailable 501 without a graph store. */
  requireGraph(): void {
    if (!this.graph.isAvailable) {
      throw new MemoryError('capability_unavailable', 'no graph store is configured: set storage.graph_driver', {
        seam: 'graph',
        driver: 'none',
      })
    }
  }
}
