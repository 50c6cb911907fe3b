import type { Database, Queryable } from '../database/database.ts'
import type { Edge } from './model.ts'
import type { Outbox } from './outbox.ts'
import type { Bodies } from './store/content/bodies.ts'
import type { ContentStore, Erasure } from './store/content/store.ts'
import { deleteEdge, deleteEdgesOf, insertEdge } from './store/edges.ts'
import type { LedgerFile } from './store/ledger-file.ts'
import { countEntries, insertEntries, redactEntries, type LedgerRow } from './store/ledger.ts'
import type { VectorStore } from './store/vector/vector-store.ts'

/** The databases behind the service. Those that are the metadata database itself share its transactions. */
export interface SeamDatabases {
  metadata: Database
  vector: Database
  /** How vectors are kept there. */
  vectors: VectorStore
  /** Absent with the driver `none`. */
  graph: Database | undefined
  /** Absent with the driver `file`, then there is the file. */
  ledger: Database | undefined
  ledgerFile?: LedgerFile | undefined
  /** Absent with the driver `none`: bodies are in the metadata. */
  content?: ContentStore | undefined
}

/**
 * Writes to each seam as part of a metadata transaction: at once where they share a database, else as outbox rows
 * that are delivered after the commit. Contract: memory.md 9.3.
 */
export class Seams {
  readonly metadata: Database
  readonly vector: Database
  readonly vectors: VectorStore
  readonly graph: Database | undefined
  /** Undefined when the ledger is a file: that is written and verified, but can be neither queried nor redacted. */
  readonly ledger: Database | undefined
  readonly ledgerFile: LedgerFile | undefined
  readonly bodies: Bodies
  readonly #outbox: Outbox

  constructor(databases: SeamDatabases, outbox: Outbox, bodies: Bodies) {
    this.metadata = databases.metadata
    this.vector = databases.vector
    this.vectors = databases.vectors
    this.graph = databases.graph
    this.ledger = databases.ledger
    this.ledgerFile = databases.ledgerFile
    this.bodies = bodies
    this.#outbox = outbox
  }

  /** Vectors share the metadata transaction; else they are put after it, by the embedding queue. */
  get vectorShared(): boolean {
    return this.vector === this.metadata
  }

  async appendEntries(tx: Queryable, entries: readonly LedgerRow[]): Promise<void> {
    if (this.ledger === this.metadata) await insertEntries(tx, entries)
    else for (const entry of entries) await this.#outbox.append(tx, 'ledger', 'append', withoutBytes(entry))
  }

  /** The number of entries redacted; in another database, of those that have arrived there. Only where `ledger` is. */
  async redactEntries(tx: Queryable, workspaceId: string, target: string): Promise<number> {
    if (!this.ledger) return 0
    if (this.ledger === this.metadata) return redactEntries(tx, workspaceId, target)
    await this.#outbox.append(tx, 'ledger', 'redact', { workspaceId, target })
    return countEntries(this.ledger, workspaceId, target)
  }

  /** Deletes bodies from the content store, once the mutation is committed. */
  async eraseBodies(tx: Queryable, target: Erasure): Promise<void> {
    await this.#outbox.append(tx, 'content', 'erase', target)
  }

  async insertEdge(tx: Queryable, edge: Edge): Promise<void> {
    if (this.graph === this.metadata) await insertEdge(tx, edge)
    else await this.#outbox.append(tx, 'graph', 'insert', edge)
  }

  async deleteEdge(tx: Queryable, edgeId: string): Promise<void> {
    if (this.graph === this.metadata) await deleteEdge(tx, edgeId)
    else await this.#outbox.append(tx, 'graph', 'delete', { edgeId })
  }

  async deleteEdgesOf(tx: Queryable, memoryId: string): Promise<void> {
    if (this.graph === this.metadata) await deleteEdgesOf(tx, memoryId)
    else await this.#outbox.append(tx, 'graph', 'deleteOf', { memoryId })
  }

  /** Of one model if it is named, else all. */
  async deleteVectors(tx: Queryable, cellNos: readonly number[], model?: string): Promise<void> {
    if (cellNos.length === 0) return
    if (this.vectorShared) await this.vectors.delete(tx, cellNos, model)
    else await this.#outbox.append(tx, 'vector', 'delete', { cellNos, model })
  }

  /** Where Edges are read inside a mutation: its own transaction, if they live there. */
  graphView(tx: Queryable): Queryable | undefined {
    return this.graph === this.metadata ? tx : this.graph
  }

  /** Erased values leave the log files of every database, soon. */
  scrub(): void {
    for (const database of new Set([this.metadata, this.vector, this.graph, this.ledger])) database?.scrub()
  }

  /** Brings what waits to the other databases; returns at once when there are none. */
  deliver(): Promise<void> {
    return this.#outbox.deliver()
  }
}

/** Bytes travel as base64 in JSON. */
const withoutBytes = (entry: LedgerRow): object => ({
  ...entry,
  salt: entry.salt && Buffer.from(entry.salt).toString('base64'),
})
