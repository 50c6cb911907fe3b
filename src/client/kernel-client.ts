import { ActionCalls, Approvals, Objectives, Projects, Requests, Runs, Turns } from './kernel/areas.ts'
import { Agents, Teams } from './kernel/registry.ts'
import { Skills } from './kernel/skills.ts'
import type { ActivityPage, ActivityQuery, CapabilityDocument, KernelHealth, Page, Scope } from './kernel/types.ts'
import { Wire, type CallOptions } from './kernel/wire.ts'
import { path } from './transport.ts'

export interface KernelClientOptions {
  fetch?: typeof fetch
  token?: string
  /** Further headers of every call; `Content-Type` and `Idempotency-Key` among them are left out. */
  requestHeaders?: Readonly<Record<string, string>>
  /** For one answer. */
  timeoutMs?: number
  /** Of GETs, and of writes with a key, when the network fails or the server is not up. */
  retries?: number
  /** Of every call that names none. */
  scope?: Scope
  /** From which the waits between retries are drawn. */
  random?: () => number
}

/**
 * The kernel over HTTP: an area for each family of routes, a method for each route, bodies and answers as on the wire.
 * Contract: kernel-2.md 15. Every method throws `KernelApiError`, with status 0 where there was no answer.
 *
 *     const kernel = new KernelClient('http://127.0.0.1:7777', { token })
 *     const { run } = await kernel.runs.create({ owner: { type: 'agent', id: 'ana' }, goal: 'Count the moons' })
 *     for await (const turn of kernel.paginate((cursor) => kernel.turns.list({ runId: run.id, ...cursor }))) show(turn)
 */
export class KernelClient {
  readonly objectives: Objectives
  readonly projects: Projects
  readonly runs: Runs
  readonly turns: Turns
  readonly requests: Requests
  readonly actionCalls: ActionCalls
  readonly approvals: Approvals
  readonly agents: Agents
  readonly teams: Teams
  readonly skills: Skills
  readonly #wire: Wire

  /** @param baseUrl one without path gets `/api/v1`; one with a path is the root of every call as it is */
  constructor(baseUrl = 'http://127.0.0.1:7777', options: KernelClientOptions = {}) {
    const { token, requestHeaders = {}, timeoutMs = 30_000, retries = 2, random = Math.random } = options
    const headers = Object.fromEntries(Object.entries(requestHeaders).filter(([name]) => !OURS.has(name.toLowerCase())))
    this.#wire = new Wire({
      connection: {
        endpoint: rootOf(baseUrl),
        fetch: options.fetch ?? globalThis.fetch,
        headers: { ...headers, ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
        timeoutMs,
      },
      scope: options.scope ?? { kind: 'local', id: 'default' },
      retries,
      random,
    })
    this.objectives = new Objectives(this.#wire)
    this.projects = new Projects(this.#wire)
    this.runs = new Runs(this.#wire)
    this.turns = new Turns(this.#wire)
    this.requests = new Requests(this.#wire)
    this.actionCalls = new ActionCalls(this.#wire)
    this.approvals = new Approvals(this.#wire)
    this.agents = new Agents(this.#wire)
    this.teams = new Teams(this.#wire)
    this.skills = new Skills(this.#wire)
  }

  /** The report of a server that is down (503) too. */
  health(options?: CallOptions): Promise<KernelHealth> {
    return this.#wire.open(path`/health`, (status, text) => status === 503 && text.includes('"checks"'), options)
  }

  /** What this server can do; another of the same version may differ. */
  capabilities(options?: CallOptions): Promise<CapabilityDocument> {
    return this.#wire.open(path`/capabilities`, undefined, options)
  }

  activity(query: ActivityQuery = {}, options?: CallOptions): Promise<ActivityPage> {
    return this.#wire.get(path`/activity`, query, options)
  }

  /** Whether the server offers an operation of this version of a capability. */
  async supports(id: string, version: string, operation: string, options?: CallOptions): Promise<boolean> {
    const { capabilities } = await this.capabilities(options)
    const found = capabilities.find((capability) => capability.id === id && capability.version === version)
    return found?.operations.includes(operation) ?? false
  }

  /** Every item of a list or of what happened so far, page by page; `list` is given where to go on. */
  async *paginate<Item>(
    list: (at: { cursor?: string }) => Promise<Page<Item> & { hasMore?: boolean }>,
  ): AsyncGenerator<Item, void, undefined> {
    let at: { cursor?: string } | undefined = {}
    while (at) {
      const { items, nextCursor, hasMore = true }: Page<Item> & { hasMore?: boolean } = await list(at)
      yield* items
      at = nextCursor !== undefined && hasMore ? { cursor: nextCursor } : undefined
    }
  }
}

/** Headers that are not the caller's. */
const OURS = new Set(['content-type', 'idempotency-key'])

const rootOf = (baseUrl: string): string => {
  const trimmed = baseUrl.replace(/\/+$/, '')
  return /^https?:\/\/[^/]+$/i.test(trimmed) ? `${trimmed}/api/v1` : trimmed
}
