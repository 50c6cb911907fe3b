import type { Queryable } from '../../database/database.ts'
import { invalid } from '../errors.ts'
import type { Scope } from '../model/fields.ts'
import type { AgentRequest } from '../model/request.ts'
import { readAgentSlots } from '../store/slots.ts'
import { findTeam, membersOf } from './parties.ts'

type Candidate = AgentRequest['candidates'][number]

/** Agents that could do it and take runs now: those with more free slots first, then fewer active runs, then id. */
export async function rankCandidates(
  db: Queryable,
  scope: Scope,
  { recipient, semanticRole }: Pick<AgentRequest, 'recipient' | 'semanticRole'>,
): Promise<Candidate[]> {
  const team = recipient.type === 'team' ? await findTeam(db, scope, recipient.id) : undefined
  const agents = team ? membersOf(team, semanticRole) : recipient.type === 'agent' ? [recipient.id] : []
  const slots = await readAgentSlots(db, scope, agents)
  return slots
    .map(({ name, active, capacity }) => ({
      deploymentId: name,
      freeSlots: Math.max(0, capacity - active),
      activeRuns: active,
    }))
    .sort(
      (a, b) => b.freeSlots - a.freeSlots || a.activeRuns - b.activeRuns || (a.deploymentId < b.deploymentId ? -1 : 1),
    )
}

/**
 * Who shall do it, of those that the recipient stands for; undefined for a person.
 * @throws invalid for an agent that the recipient is not, or a team's without an active member of the role
 */
export async function assign(
  db: Queryable,
  scope: Scope,
  request: Pick<AgentRequest, 'recipient' | 'semanticRole'>,
  agentId: string | undefined,
): Promise<string | undefined> {
  const { type, id } = request.recipient
  if (type === 'agent') {
    if (agentId !== undefined && agentId !== id) throw invalid(`assignedAgentId must be the recipient, ${id}`)
    return id
  }
  if (type !== 'team') {
    if (agentId !== undefined) throw invalid(`assignedAgentId: the recipient ${type}:${id} has no agents`)
    return undefined
  }
  const candidates = await rankCandidates(db, scope, request)
  if (agentId === undefined || !candidates.some(({ deploymentId }) => deploymentId === agentId)) {
    const role = request.semanticRole === undefined ? '' : ` with role ${request.semanticRole}`
    throw invalid(`assignedAgentId must be an active member of team ${id}${role}`)
  }
  return agentId
}
