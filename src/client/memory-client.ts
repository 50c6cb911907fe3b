import type * as graph from './graph-types.ts'
import { ask, inUtf8, path, send, type Call, type Connection, type Path } from './transport.ts'
import type * as wire from './types.ts'

export interface MemoryClientOptions {
  /** Sent as `Mem-Agent-Id` with every call; most writes need one. */
  agentId?: string
  /** A place to keep the workspace in use; every method takes the workspace as argument. */
  workspace?: string
  fetch?: typeof fetch
  /** Further headers of every call. */
  headers?: Record<string, string>
  /** For one whole call. */
  timeoutMs?: number
}

export interface WriteOptions {
  /** A repeat with the same key and body within 24 h gives the first answer again (memory.md 2.8). */
  idempotencyKey?: string
}

/**
 * The memory service over HTTP: one method per operation of memory.md 3, bodies and answers as on the wire. Contract:
 * memory.md 13. Every method throws `MemoryApiError` for an answer other than 2xx, `MemoryTimeoutError` and
 * `MemoryNetworkError` when there is none, `MemoryRequestError` when nothing could be sent. Nothing is tried twice.
 *
 *     const client = new MemoryClient('http://127.0.0.1:7777', undefined, { agentId: 'agent_docs' })
 *     const { id } = await client.createWorkspace({ name: 'notes' })
 *     await client.imprint(id, { content: 'The lighthouse keeper likes rye bread.' })
 *     const { results } = await client.recall(id, { query: 'bread' })
 */
export class MemoryClient {
  endpoint: string
  apiKey: string | undefined
  agentId: string | undefined
  workspace: string | undefined
  fetch: typeof fetch
  readonly #headers: Record<string, string>
  readonly #timeoutMs: number

  constructor(endpoint: string, apiKey?: string, options: MemoryClientOptions = {}) {
    this.endpoint = endpoint
    this.apiKey = apiKey
    this.agentId = options.agentId
    this.workspace = options.workspace
    this.fetch = options.fetch ?? globalThis.fetch
    this.#headers = options.headers ?? {}
    this.#timeoutMs = options.timeoutMs ?? 30_000
  }

  // Workspaces and collections (memory.md 3.1)

  createWorkspace(request: wire.WorkspaceRequest, options?: WriteOptions): Promise<wire.Workspace> {
    return this.#post(path`/v1/workspaces`, request, options)
  }

  getWorkspace(workspace: string): Promise<wire.Workspace> {
    return this.#get(path`/v1/workspaces/${workspace}`)
  }

  listWorkspaces(page: wire.Page = {}): Promise<wire.Listed<'workspaces', wire.Workspace>> {
    return this.#get(path`/v1/workspaces`, page)
  }

  /** Replaces the record: an absent `region`, `chunker_id`, `embedding_model` or `meta` is cleared (memory.md 1.2). */
  updateWorkspace(workspace: string, request: wire.WorkspaceRequest): Promise<wire.Workspace> {
    return this.#ask({ method: 'PUT', path: path`/v1/workspaces/${workspace}`, body: request })
  }

  deleteWorkspace(workspace: string): Promise<void> {
    return this.#delete(path`/v1/workspaces/${workspace}`)
  }

  createCollection(
    workspace: string,
    request: wire.CollectionRequest,
    options?: WriteOptions,
  ): Promise<wire.Collection> {
    return this.#post(path`/v1/workspaces/${workspace}/collections`, request, options)
  }

  getCollection(workspace: string, collectionId: string): Promise<wire.Collection> {
    return this.#get(path`/v1/workspaces/${workspace}/collections/${collectionId}`)
  }

  listCollections(workspace: string, page: wire.Page = {}): Promise<wire.Listed<'collections', wire.Collection>> {
    return this.#get(path`/v1/workspaces/${workspace}/collections`, page)
  }

  deleteCollection(workspace: string, collectionId: string): Promise<void> {
    return this.#delete(path`/v1/workspaces/${workspace}/collections/${collectionId}`)
  }

  // Memories (memory.md 3.2)

  imprint(workspace: string, request: wire.ImprintRequest, options?: WriteOptions): Promise<wire.ImprintResult> {
    return this.#post(path`/v1/workspaces/${workspace}/memories`, request, options)
  }

  listMemories(
    workspace: string,
    query: wire.MemoryListQuery = {},
  ): Promise<wire.Listed<'memories', wire.ListedMemory>> {
    return this.#get(path`/v1/workspaces/${workspace}/memories`, query)
  }

  lookup(workspace: string, memoryId: string): Promise<wire.MemoryWithCells> {
    return this.#get(path`/v1/workspaces/${workspace}/memories/${memoryId}`)
  }

  /** The Memory as it was at one of its watermarks. */
  lookupAt(workspace: string, memoryId: string, watermark: string): Promise<wire.MemoryVersion> {
    return this.#get(path`/v1/workspaces/${workspace}/memories/${memoryId}@${watermark}`)
  }

  /** @throws MemoryApiError with `isCasConflict()` when the head is no longer `watermark`. */
  update(
    workspace: string,
    memoryId: string,
    request: wire.UpdateRequest,
    watermark: string,
  ): Promise<wire.UpdateResult> {
    const url = path`/v1/workspaces/${workspace}/memories/${memoryId}`
    return this.#ask({ method: 'PUT', path: url, body: request, headers: { 'If-Match': watermark } })
  }

  /** @throws MemoryApiError with `isCasConflict()` when the head is no longer `watermark`. */
  patch(workspace: string, memoryId: string, request: wire.PatchRequest, watermark: string): Promise<wire.PatchResult> {
    const url = path`/v1/workspaces/${workspace}/memories/${memoryId}`
    return this.#ask({ method: 'PATCH', path: url, body: request, headers: { 'If-Match': watermark } })
  }

  /** Without a watermark it appends to whatever the head is. */
  append(
    workspace: string,
    memoryId: string,
    request: wire.AppendRequest,
    watermark?: string,
    options?: WriteOptions,
  ): Promise<wire.AppendResult> {
    const url = path`/v1/workspaces/${workspace}/memories/${memoryId}:append`
    return this.#post(url, request, options, { 'If-Match': watermark })
  }

  forget(workspace: string, memoryId: string, query: wire.ForgetQuery = {}): Promise<wire.ForgetResult> {
    return this.#ask({ method: 'DELETE', path: path`/v1/workspaces/${workspace}/memories/${memoryId}`, query })
  }

  watermarkHistory(
    workspace: string,
    memoryId: string,
    page: wire.Page = {},
  ): Promise<wire.Listed<'watermarks', wire.WatermarkEntry>> {
    return this.#get(path`/v1/workspaces/${workspace}/memories/${memoryId}/watermarks`, page)
  }

  async setTag(workspace: string, memoryId: string, key: string, value: string): Promise<void> {
    const url = path`/v1/workspaces/${workspace}/memories/${memoryId}/tags/${key}`
    await send(this.#connection(), { method: 'PUT', path: url, body: { value } })
  }

  deleteTag(workspace: string, memoryId: string, key: string): Promise<void> {
    return this.#delete(path`/v1/workspaces/${workspace}/memories/${memoryId}/tags/${key}`)
  }

  // Graph (memory.md 3.3)

  listEdges(workspace: string, memoryId: string, query: graph.EdgeListQuery = {}): Promise<graph.EdgeList> {
    return this.#get(path`/v1/workspaces/${workspace}/memories/${memoryId}/edges`, query)
  }

  link(
    workspace: string,
    sourceMemoryId: string,
    request: graph.LinkRequest,
    options?: WriteOptions,
  ): Promise<graph.LinkResult> {
    return this.#post(path`/v1/workspaces/${workspace}/memories/${sourceMemoryId}/edges`, request, options)
  }

  /** Rows succeed or fail alone; read `failed` and the rows' `status`. */
  linkBatch(
    workspace: string,
    request: graph.LinkBatchRequest,
    options?: WriteOptions,
  ): Promise<graph.LinkBatchResult> {
    return this.#post(path`/v1/workspaces/${workspace}/edges/:batch`, request, options)
  }

  unlink(workspace: string, edgeId: string): Promise<void> {
    return this.#delete(path`/v1/workspaces/${workspace}/edges/${edgeId}`)
  }

  neighbors(workspace: string, request: graph.NeighborsRequest): Promise<graph.NeighborsResult> {
    return this.#post(path`/v1/workspaces/${workspace}/graph/neighbors`, request)
  }

  traverse(workspace: string, request: graph.TraverseRequest): Promise<graph.TraverseResult> {
    return this.#post(path`/v1/workspaces/${workspace}/graph/traverse`, request)
  }

  graphStats(workspace: string): Promise<graph.GraphStats> {
    return this.#get(path`/v1/workspaces/${workspace}/graph/stats`)
  }

  // Recall and pins (memory.md 3.4, 4)

  recall(workspace: string, request: wire.RecallRequest): Promise<wire.RecallResult> {
    return this.#post(path`/v1/workspaces/${workspace}/recall`, request)
  }

  createPin(workspace: string, request: wire.PinRequest, options?: WriteOptions): Promise<wire.PinResult> {
    return this.#post(path`/v1/workspaces/${workspace}/recall/pins`, request, options)
  }

  listPins(workspace: string, page: wire.Page = {}): Promise<wire.Listed<'pins', wire.Pin>> {
    return this.#get(path`/v1/workspaces/${workspace}/recall/pins`, page)
  }

  deletePin(workspace: string, pinId: string): Promise<void> {
    return this.#delete(path`/v1/workspaces/${workspace}/recall/pins/${pinId}`)
  }

  // Agents and ledger (memory.md 3.5, 3.6)

  registerAgent(workspace: string, request: wire.AgentRequest, options?: WriteOptions): Promise<wire.Agent> {
    return this.#post(path`/v1/workspaces/${workspace}/agents`, request, options)
  }

  getAgent(workspace: string, agentId: string): Promise<wire.Agent> {
    return this.#get(path`/v1/workspaces/${workspace}/agents/${agentId}`)
  }

  listAgents(workspace: string, page: wire.Page = {}): Promise<wire.Listed<'agents', wire.Agent>> {
    return this.#get(path`/v1/workspaces/${workspace}/agents`, page)
  }

  deactivateAgent(workspace: string, agentId: string): Promise<void> {
    return this.#delete(path`/v1/workspaces/${workspace}/agents/${agentId}`)
  }

  ledgerQuery(workspace: string, query: wire.LedgerQuery = {}): Promise<wire.Listed<'entries', wire.LedgerEntry>> {
    return this.#get(path`/v1/workspaces/${workspace}/ledger`, query)
  }

  // Operation (memory.md 3.7)

  health(): Promise<wire.Health> {
    return this.#get(path`/healthz`)
  }

  /** The answer of a degraded server (503) too. */
  ready(): Promise<wire.Readiness> {
    const accepts = (status: number, body: string): boolean => status === 503 && body.includes('"adapter"')
    return this.#ask({ method: 'GET', path: path`/readyz`, accepts })
  }

  #get<Answer>(url: Path, query: object = {}): Promise<Answer> {
    return this.#ask({ method: 'GET', path: url, query })
  }

  #post<Answer>(
    url: Path,
    body: object,
    options: WriteOptions = {},
    headers: Record<string, string | undefined> = {},
  ): Promise<Answer> {
    const idempotent = { 'Idempotency-Key': options.idempotencyKey }
    return this.#ask({ method: 'POST', path: url, body, headers: { ...idempotent, ...headers } })
  }

  async #delete(url: Path): Promise<void> {
    await send(this.#connection(), { method: 'DELETE', path: url })
  }

  #ask<Answer>(call: Call): Promise<Answer> {
    return ask(this.#connection(), call)
  }

  #connection(): Connection {
    const authorization = this.apiKey ? `Bearer ${this.apiKey}` : undefined
    return {
      endpoint: this.endpoint,
      fetch: this.fetch,
      headers: { ...this.#headers, Authorization: authorization, 'Mem-Agent-Id': inUtf8(this.agentId) },
      timeoutMs: this.#timeoutMs,
    }
  }
}
