import { toTimestamp, type Clock } from '../base/clock.ts'
import type { Caller } from './caller.ts'
import { invalidInput, MemoryError, notFound } from './errors.ts'
import { proofHash, providerOf, shownProofHash, verificationFailed, verifyIdentity, type Claim } from './identity.ts'
import { RESERVED_AGENTS, SYSTEM_AGENT, type Agent } from './model.ts'
import type { Mutation, Mutations } from './mutation.ts'
import type { AgentRequest } from './requests.ts'
import type { Seams } from './seams.ts'
import { deactivateAgent, findAgent, findPresence, saveAgent, touchAgent } from './store/agents.ts'

/** `last_seen_at` is written at most this often an agent: attribution needs no finer grain. */
const TOUCH_INTERVAL_MS = 1000

/** Who may write, and what is known of them. Contract: memory.md 1.9, 3.5, 16. */
export class Agents {
  readonly #seams: Seams
  readonly #mutations: Mutations
  readonly #clock: Clock
  readonly #rejectInactive: boolean

  constructor(seams: Seams, mutations: Mutations, clock: Clock, rejectInactive: boolean) {
    this.#seams = seams
    this.#mutations = mutations
    this.#clock = clock
    this.#rejectInactive = rejectInactive
  }

  /**
   * Verifies the writer and registers an unknown one, whatever becomes of its request.
   * @throws agent_verification_failed 401.
   */
  async admit(caller: Caller, workspaceId: string, claim: Claim): Promise<void> {
    const provider = this.verify(claim)
    const known = await findPresence(this.#seams.metadata, workspaceId, claim.agentId)
    if (!known) return this.#autoRegister(caller, workspaceId, claim, provider)
    if (known.active === 0 && this.#rejectInactive) {
      throw verificationFailed(provider, `agent ${claim.agentId} is deactivated: register it again to write`)
    }
    const now = this.#clock.now()
    if (known.last_seen_at === null || now - known.last_seen_at >= TOUCH_INTERVAL_MS) {
      await this.#seams.metadata.transaction((tx) => touchAgent(tx, workspaceId, claim.agentId, now))
    }
  }

  /** Gives the provider that believes the claim. @throws agent_verification_failed 401. */
  verify(claim: Claim): string {
    if (RESERVED_AGENTS.includes(claim.agentId)) {
      throw verificationFailed(providerOf(claim.provider), `${claim.agentId} is reserved: write under another agent id`)
    }
    return verifyIdentity(claim)
  }

  async #autoRegister(caller: Caller, workspaceId: string, claim: Claim, provider: string): Promise<void> {
    const { idempotency: _, ...registrar } = caller
    await this.#mutations.run(registrar, workspaceId, async (mutation) => {
      if (await findAgent(mutation.tx, workspaceId, claim.agentId)) return
      const now = toTimestamp(mutation.now)
      const hash = shownProofHash(claim)
      await saveAgent(mutation.tx, {
        agent_id: claim.agentId,
        workspace_id: workspaceId,
        identity_provider: provider,
        ...(hash !== undefined && { identity_proof_hash: hash }),
        registered_at: now,
        last_seen_at: now,
        active: true,
      })
      mutation.record('agent_register', { target: claim.agentId, metadata: { auto: true } })
    })
  }

  /** Registers, or replaces the profile of a known agent and activates it. */
  async register(caller: Caller, workspaceId: string, request: AgentRequest): Promise<Agent> {
    if (RESERVED_AGENTS.includes(request.agent_id)) {
      throw new MemoryError('already_exists', `agent ${request.agent_id} is reserved`, { id: request.agent_id })
    }
    const { identity_provider, identity_proof, ...profile } = request
    const provider = verifyIdentity({ agentId: request.agent_id, provider: identity_provider, proof: identity_proof })
    return this.#mutations.run(caller, workspaceId, async (mutation) => {
      const known = await findAgent(mutation.tx, workspaceId, request.agent_id)
      const agent: Agent = {
        ...profile,
        workspace_id: workspaceId,
        identity_provider: provider,
        ...(identity_proof && { identity_proof_hash: proofHash(identity_proof) }),
        registered_at: known?.registered_at ?? toTimestamp(mutation.now),
        ...(known?.last_seen_at !== undefined && { last_seen_at: known.last_seen_at }),
        active: true,
      }
      await saveAgent(mutation.tx, agent)
      mutation.record('agent_register', { target: agent.agent_id, metadata: { auto: false } })
      return agent
    })
  }

  async deactivate(caller: Caller, workspaceId: string, agentId: string): Promise<void> {
    await this.#mutations.run(caller, workspaceId, async (mutation) => {
      if (!(await findAgent(mutation.tx, workspaceId, agentId))) throw notFound('agent', agentId)
      if (RESERVED_AGENTS.includes(agentId)) throw invalidInput(`agent ${agentId} is reserved`, 'agent_id')
      await deactivateAgent(mutation.tx, workspaceId, agentId)
      mutation.record('agent_deactivate', { target: agentId })
    })
  }
}

/** The reserved agents that every new workspace has. */
export async function registerReserved(mutation: Mutation, workspaceId: string): Promise<void> {
  for (const agentId of RESERVED_AGENTS) {
    await saveAgent(mutation.tx, {
      agent_id: agentId,
      workspace_id: workspaceId,
      display_name: agentId === SYSTEM_AGENT ? 'System' : 'Auto-link',
      identity_provider: 'opaque',
      registered_at: toTimestamp(mutation.now),
      active: true,
    })
  }
}
