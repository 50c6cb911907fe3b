import * as z from 'zod'
import type { IdSource } from '../../base/ids.ts'
import type { Caller } from '../caller.ts'
import { invalidInput, notFound } from '../errors.ts'
import type { Claim } from '../identity.ts'
import { SYSTEM_AGENT, type Workspace } from '../model.ts'
import { parseWith } from '../routes/route.ts'
import type { MemoryService } from '../service.ts'

/** What calling a tool may do to what is stored; where it only reads, the other hints mean nothing. */
export const EFFECTS = {
  reads: { readOnlyHint: true },
  adds: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  /** Adds once: the same call again adds nothing. */
  ensures: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
  changes: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
} as const

interface ToolFacts {
  name: `mem_${string}`
  description: string
  effect: keyof typeof EFFECTS
  /** Answers 501 without a graph store. */
  graph?: true
}

/** A tool as data. */
export interface Tool extends ToolFacts {
  input: z.ZodType
  output: z.ZodType
  /** Gives what runs the call and answers JSON. @throws invalid_input for missing, mistyped and unknown arguments. */
  prepare: (args: unknown) => (call: ToolCall) => Promise<string>
}

/** A tool whose handler takes what `input` gives and answers what `output` describes, or its JSON where it has made that. */
export const tool = <Input, Output extends object>(
  facts: ToolFacts,
  input: z.ZodType<Input>,
  output: z.ZodType<Output>,
  handle: (call: ToolCall, args: Input) => Promise<Output | string>,
): Tool => ({
  ...facts,
  input,
  output,
  prepare: (raw) => {
    const args = parseWith(input, raw)
    return async (call) => {
      const answer = await handle(call, args)
      return typeof answer === 'string' ? answer : JSON.stringify(answer)
    }
  },
})

export const workspaceId = z.string()
export const deletedAnswer = z.object({ deleted: z.string() })

/** Which workspaces a connection reaches. Contract: memory.md 2.6. */
export interface Tenancy {
  multiTenant: boolean
  /** The workspace that `X-Mem-Workspace` names. */
  tenant: string | undefined
}

const UNBOUND: Tenancy = { multiTenant: false, tenant: undefined }

/** What a connection brings to each of its calls. */
export interface ToolPeer extends Pick<Caller, 'apiKeyId' | 'ip' | 'userAgent'> {
  /** Of the request that the calls came in, if they came in one. */
  requestId?: string
  /** Every workspace, when the transport knows none: stdio. */
  tenancy?: Tenancy
}

/** A call under way: who asks, and the checks of memory.md 2.1 that lie before the operation. */
export class ToolCall {
  readonly service: MemoryService
  /** As a `Caller` has them. */
  readonly startedAt = performance.now()
  readonly signal: AbortSignal
  readonly #ids: IdSource
  readonly #peer: Omit<ToolPeer, 'tenancy' | 'requestId'>
  #requestId: string | undefined
  readonly #tenancy: Tenancy
  readonly #pinned: Claim | undefined
  readonly #needsGraph: boolean

  constructor(parts: {
    service: MemoryService
    ids: IdSource
    tool: Tool
    peer: ToolPeer
    pinned: Claim | undefined
    signal: AbortSignal
  }) {
    const { tenancy = UNBOUND, requestId, ...peer } = parts.peer
    this.service = parts.service
    this.signal = parts.signal
    this.#ids = parts.ids
    this.#peer = peer
    this.#requestId = requestId
    this.#tenancy = tenancy
    this.#pinned = parts.pinned
    this.#needsGraph = parts.tool.graph ?? false
  }

  /** Who asks: the pinned agent, else `agent_system`. */
  get caller(): Caller {
    return this.#callerAs(this.#pinned?.agentId ?? SYSTEM_AGENT)
  }

  /** The only workspace that lists show. */
  get tenant(): string | undefined {
    return this.#tenancy.multiTenant ? this.#tenancy.tenant : undefined
  }

  /** @throws invalid_input 400, not_found 404, capability_unavailable 501. */
  async workspace(id: string): Promise<Workspace> {
    if (!this.#reaches(id)) throw notFound('workspace', id)
    const workspace = await this.service.requireWorkspace(id)
    if (this.#needsGraph) this.service.requireGraph()
    return workspace
  }

  /**
   * The workspace to write in, and the writer: the pinned agent, else the one named, else `agent_system`. `named` is the
   * agent, if there is one. @throws as `workspace`; agent_verification_failed 401.
   */
  async write(id: string, agentId?: string): Promise<{ workspace: Workspace; caller: Caller; named?: string }> {
    const workspace = await this.workspace(id)
    const claim =
      this.#pinned ?? (agentId === undefined ? undefined : { agentId, provider: 'opaque', proof: undefined })
    if (!claim) return { workspace, caller: this.caller }
    const caller = this.#callerAs(claim.agentId)
    await this.service.agents.admit(caller, workspace.id, claim)
    return { workspace, caller, named: claim.agentId }
  }

  /** The id of the workspace of a record that is named by its id alone. @throws not_found 404 when `given` is another. */
  async ownerOf(
    resource: string,
    id: string,
    given: string | undefined,
    find: () => Promise<string | undefined>,
  ): Promise<string> {
    if (this.#needsGraph) this.service.requireGraph()
    const owner = await find()
    if (owner === undefined || owner !== (given ?? owner) || !this.#reaches(owner)) throw notFound(resource, id)
    return owner
  }

  /** Registers a pinned agent in a workspace that did not exist before. */
  async admitPinned(workspace: Workspace): Promise<void> {
    if (this.#pinned) await this.service.agents.admit(this.caller, workspace.id, this.#pinned)
  }

  /** With the id of the request, which is made for what is written down alone. */
  #callerAs(agentId: string): Caller {
    const requestId = (this.#requestId ??= this.#ids('req_'))
    return { ...this.#peer, requestId, startedAt: this.startedAt, agentId, signal: this.signal }
  }

  #reaches(workspace: string): boolean {
    const { multiTenant, tenant } = this.#tenancy
    if (!multiTenant) return true
    if (tenant === undefined) throw invalidInput('the header X-Mem-Workspace is required', 'X-Mem-Workspace')
    return tenant === workspace
  }
}
