import type { Change } from '../change.ts'
import { conflict, forbidden, notFound } from '../errors.ts'
import type { Party } from '../model/fields.ts'
import type { AgentRequest } from '../model/request.ts'
import type { Run } from '../model/run.ts'
import { findRecord } from '../store/records.ts'
import { findRequestOfChild, freeDelegation, takeDelegation } from '../store/requests.ts'
import { runs } from '../store/runs.ts'
import { findTeam, membersOf, type Team } from './parties.ts'

/** How far work may be handed on. Contract: kernel-1.md 8, 12. */

type Policy = NonNullable<AgentRequest['delegationPolicy']>
type Asked = Pick<AgentRequest, 'requester' | 'recipient' | 'acceptancePolicy' | 'delegationPolicy'>

/** Whose limits count: the first team of those who take part; where there is none, those of the request count for the owner. */
export const holderOf = (
  { requester, recipient }: Pick<AgentRequest, 'requester' | 'recipient'>,
  { owner }: Run,
): Party => [owner, requester, recipient].find(({ type }) => type === 'team') ?? owner

/**
 * The limits that a request stands under: of the team, as they are now, else its own.
 * @throws forbidden for a peer, or more depth than is allowed, or acceptance ahead of time that the team does not allow;
 * not_found for a recipient that is no team, conflict for one that is not active
 */
export async function checkDelegation(change: Change, asked: Asked, source: Run): Promise<Policy | undefined> {
  const { tx, scope } = change
  const holder = holderOf(asked, source)
  const team = holder.type === 'team' ? await findTeam(tx, scope, holder.id) : undefined
  const policy = team ? limitsOf(team) : asked.delegationPolicy
  if (policy) {
    if (team && !policy.allowPeerDelegation && isPeer(team, asked))
      throw forbidden('the team allows no delegation to peers')
    if (policy.requireAcceptance && asked.acceptancePolicy === 'preauthorized') {
      throw forbidden('the team requires that the recipient accepts: acceptancePolicy must be recipient_review')
    }
    await checkDepth(change, source, policy.maximumDepth)
  }
  if (asked.recipient.type === 'team') await expectActive(change, asked.recipient.id)
  return policy
}

/** A deployment may allow less at once than its definition. */
const limitsOf = ({ definition: { delegation }, deployment: { restrictions } }: Team): Policy => ({
  ...delegation,
  maximumConcurrent: Math.min(delegation.maximumConcurrent, restrictions.maximumConcurrency ?? Infinity),
})

/** Both are members of the team. */
const isPeer = (team: Team, { requester, recipient }: Asked): boolean =>
  [requester, recipient].every(({ type, id }) => type === 'agent' && membersOf(team).includes(id))

const FURTHEST = 256

/** @throws forbidden when as many requests led to the source run as there may be in a row */
async function checkDepth({ tx, scope }: Change, source: Run, maximum: number): Promise<void> {
  let depth = 1
  let run: Run | undefined = source
  for (let steps = 0; run && depth <= maximum && steps < FURTHEST; steps++) {
    const request = await findRequestOfChild(tx, scope, run.id)
    if (request) depth++
    const above: string | undefined = request?.sourceRunId ?? run.parentRunId
    run = above === undefined ? undefined : await findRecord(tx, runs, scope, above)
  }
  if (depth > maximum) throw forbidden(`delegation goes ${maximum} deep at most`)
}

async function expectActive({ tx, scope }: Change, teamId: string): Promise<void> {
  const team = await findTeam(tx, scope, teamId)
  if (!team) throw notFound('team deployment', teamId)
  if (team.deployment.status !== 'active') throw conflict(`team deployment ${teamId} is ${team.deployment.status}`)
}

const nameOf = ({ type, id }: Party): string => `${type}:${id}`

/** @throws conflict when as many requests are open as there may be; of two racers for the last place one has it */
export async function takePlace({ tx, scope }: Change, request: AgentRequest, source: Run): Promise<void> {
  const { delegationPolicy } = request
  if (!delegationPolicy) return
  const { maximumConcurrent } = delegationPolicy
  if (!(await takeDelegation(tx, scope, nameOf(holderOf(request, source)), maximumConcurrent))) {
    throw conflict(`${maximumConcurrent} requests are open, which is all that delegation allows`)
  }
}

/** At the end of a request. */
export async function givePlace({ tx, scope }: Change, request: AgentRequest, source: Run): Promise<void> {
  if (request.delegationPolicy) await freeDelegation(tx, scope, nameOf(holderOf(request, source)))
}
