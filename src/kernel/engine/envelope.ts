import { toTimestamp } from '../../base/clock.ts'
import { offerSkills } from '../actions/offer.ts'
import type { Agent } from '../actions/resolve.ts'
import type { KernelContext } from '../context.ts'
import type { EligibleAgent, Envelope, Instructions } from '../model/envelope.ts'
import type { Scope } from '../model/fields.ts'
import type { Shown } from '../model/outcome.ts'
import type { PendingResult, Run } from '../model/run.ts'
import { listDeployed } from '../store/deployments.ts'
import { scopeKey } from '../store/scope-key.ts'

/** What a model gets to see. Contract: kernel-1.md 14.3. */

/** What of it is read from the store, besides the run. */
export type Surroundings = Pick<Envelope, 'instructions' | 'eligibleAgents' | 'skills' | 'actions'>

const MAX_AGENTS = 32
const MAX_GUIDANCE = 32
/** Who could be given work changes rarely, and its definitions are long. */
const AGENTS_FOR_MS = 5000

/** Reads what runs of agents are surrounded by; without an agent registry there is nothing to read. */
export function createSurroundings(context: KernelContext): (run: Run, agent?: Agent) => Promise<Surroundings> {
  const known = new Map<string, { at: number; agents: EligibleAgent[] }>()

  async function readAgents(scope: Scope): Promise<EligibleAgent[]> {
    const now = context.store.now()
    const key = scopeKey(scope)
    const kept = known.get(key)
    if (kept && Math.abs(now - kept.at) < AGENTS_FOR_MS) return kept.agents
    const excludeStatuses = ['pending', 'paused', 'retired']
    const deployed = await listDeployed(context.store.database, 'agent', scope, { excludeStatuses, limit: MAX_AGENTS })
    const agents = deployed.map(({ deployment: { id, displayName }, definition }) => ({
      id,
      displayName: displayName ?? definition.displayName,
      purpose: definition.purpose,
    }))
    known.set(key, { at: now, agents })
    return agents
  }

  return async (run, agent) => {
    if (!agent) return { instructions: {}, eligibleAgents: [], skills: [], actions: [] }
    const { skills, actions } = await offerSkills(context, run, agent)
    const agents = await readAgents(run.scope)
    const eligibleAgents = agents.filter(({ id }) => id !== agent.deployment.id)
    return { instructions: instructionsOf(agent), eligibleAgents, skills, actions }
  }
}

const instructionsOf = ({ definition }: Agent): Instructions => ({
  systemPrompt: definition.systemPrompt,
  purpose: definition.purpose,
  ...(definition.personality !== undefined && { personality: definition.personality }),
  operatingPrinciples: definition.operatingPrinciples,
  domainContext: definition.domainContext,
})

/** What the model is asked with: the run as it stands, and what is around it. Contract: kernel-1.md 14.3. */
export function composeEnvelope(run: Run, surroundings: Surroundings, turnId: string, now: number): Envelope {
  const { id, kind, source, owner, deadline, entrypoint, goal, context, plan, checkpoint, budget } = run
  return {
    invocationId: turnId,
    run: {
      id,
      kind,
      source,
      owner,
      turn: run.lastAppliedTurn + 1,
      ...(deadline !== undefined && { deadline }),
      ...(entrypoint !== undefined && { entrypoint }),
    },
    now: toTimestamp(now),
    goal,
    context,
    ...(plan !== undefined && { plan }),
    checkpoint,
    ...surroundings,
    ...(budget && { budget: { limits: budget, used: run.budgetUsage, state: run.budgetState ?? 'active' } }),
    results: run.pendingResults,
    guidance: run.pendingInterventions.slice(0, MAX_GUIDANCE),
  }
}

const resultKey = ({ kind, id, status, at }: PendingResult): string => `${kind} ${id} ${status} ${at}`

export const shownBy = ({ guidance, results }: Envelope): Shown => ({
  guidance: guidance.map(({ id }) => id),
  results: results.map(resultKey),
})

/** Whether guidance came that the model did not know. */
export const hasNewer = (run: Run, shown: Shown): boolean => {
  const beyond = run.pendingInterventions.slice(0, MAX_GUIDANCE)
  return beyond.some(({ id }) => !shown.guidance.includes(id))
}

export const withoutShown = (run: Run, shown: Shown): Run => ({
  ...run,
  pendingInterventions: run.pendingInterventions.filter(({ id }) => !shown.guidance.includes(id)),
  pendingResults: run.pendingResults.filter((result) => !shown.results.includes(resultKey(result))),
})
