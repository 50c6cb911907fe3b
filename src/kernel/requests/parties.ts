import type { Queryable } from '../../database/database.ts'
import type { Change } from '../change.ts'
import { forbidden } from '../errors.ts'
import type { Party, Scope } from '../model/fields.ts'
import type { AgentRequest } from '../model/request.ts'
import type { Run } from '../model/run.ts'
import { findDefinition } from '../store/definitions.ts'
import { teamDeployments, type Deployed } from '../store/deployments.ts'
import { findRecord } from '../store/records.ts'
import { executorOf } from '../store/slots.ts'

/** Who may act for the sides of a request. Contract: kernel-1.md 8. */

export type Team = Deployed<'team'>

/** With its active definition; undefined where no team of this name is deployed. */
export async function findTeam(db: Queryable, scope: Scope, id: string): Promise<Team | undefined> {
  const deployment = await findRecord(db, teamDeployments, scope, id)
  if (!deployment) return undefined
  const definition = await findDefinition(db, 'team', scope, deployment.definitionId, deployment.activeVersion)
  return definition && { deployment, definition }
}

/** Agents of the roster, of this role where one is named. */
export const membersOf = ({ deployment }: Team, role?: string): string[] =>
  deployment.roster
    .filter(({ roleId }) => role === undefined || roleId === role)
    .map(({ agentDeploymentId }) => agentDeploymentId)

export const isSame = (one: Party, other: Party): boolean => one.type === other.type && one.id === other.id

/** A host's identity replaces what the body claims. Contract: kernel-1.md 1.3 */
export const principalOf = ({ by }: Change, claimed: Party): Party => (by.actorSource === 'host' ? by.actor : claimed)

/** The party itself, or, of a team, one of its agents. */
async function speaksFor({ tx, scope }: Change, principal: Party, side: Party): Promise<boolean> {
  if (isSame(principal, side)) return true
  if (side.type !== 'team' || principal.type !== 'agent') return false
  const team = await findTeam(tx, scope, side.id)
  return team !== undefined && membersOf(team).includes(principal.id)
}

/** @throws forbidden for all but those who may speak for this side */
export async function expectParty(change: Change, principal: Party, side: Party, what: string): Promise<void> {
  if (!(await speaksFor(change, principal, side))) {
    throw forbidden(`${principal.type}:${principal.id} is not the ${what} ${side.type}:${side.id}`)
  }
}

/** @throws forbidden for a requester that neither owns nor executes the run */
export function expectAuthority(requester: Party, source: Run): void {
  const executor = executorOf(source)
  const isExecutor = requester.type === 'agent' && requester.id === executor
  if (!isSame(requester, source.owner) && !isExecutor) {
    throw forbidden(`${requester.type}:${requester.id} neither owns nor executes agent run ${source.id}`)
  }
}

/** The agent or person that does the work. */
export const workerOf = ({ recipient, assignedAgentId }: AgentRequest): Party =>
  assignedAgentId === undefined ? recipient : { type: 'agent', id: assignedAgentId }

/** Who of the requester's side may review a completion, besides a team's members: never the worker. */
async function reviewSides({ tx, scope }: Change, request: AgentRequest, source: Run): Promise<Party[]> {
  const executor = executorOf(source)
  const sides: Party[] = [
    request.requester,
    source.owner,
    ...(executor === undefined ? [] : [{ type: 'agent', id: executor }]),
  ]
  for (const { type, id } of [request.requester, source.owner]) {
    const team = type === 'team' ? await findTeam(tx, scope, id) : undefined
    if (!team) continue
    sides.push(...membersOf(team).map((member) => ({ type: 'agent', id: member })))
    sides.push(...team.definition.approvals.approverPrincipals.map(partyOf))
  }
  return sides
}

const partyOf = (principal: string): Party => {
  const colon = principal.indexOf(':')
  return { type: principal.slice(0, colon), id: principal.slice(colon + 1) }
}

/** @throws forbidden for the worker, and for all who are not of the requester's side */
export async function expectReviewer(
  change: Change,
  principal: Party,
  request: AgentRequest,
  source: Run,
): Promise<void> {
  if (isSame(principal, workerOf(request)) || isSame(principal, request.recipient)) {
    throw forbidden('who did the work cannot review it')
  }
  const sides = await reviewSides(change, request, source)
  if (!sides.some((side) => isSame(side, principal))) {
    throw forbidden(`${principal.type}:${principal.id} is not on the requester's side`)
  }
}

/** Agents that may review and have not, the nearest first. */
export async function findReviewers(change: Change, request: AgentRequest, source: Run): Promise<string[]> {
  const worker = workerOf(request)
  const sides = await reviewSides(change, request, source)
  const free = sides.filter(
    (side) =>
      side.type === 'agent' &&
      !isSame(side, worker) &&
      !isSame(side, request.recipient) &&
      !request.completionReviews.some(({ reviewer }) => isSame(reviewer, side)),
  )
  return [...new Set(free.map(({ id }) => id))]
}
