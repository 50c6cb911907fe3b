import type { Change } from '../change.ts'
import { invalid, notFound } from '../errors.ts'
import type { Manifests } from '../model/definition.ts'
import type { TeamDeployment } from '../model/deployment.ts'
import { listDeployed } from '../store/deployments.ts'
import { scopedId } from './definitions.ts'

type Roster = TeamDeployment['roster']
type Role = Manifests['team']['roles'][number]

/**
 * Whether a team's members fit its roles.
 * @throws invalid for a member or agent that is there twice, an unknown role, a role with too few or too many members, or a
 * member without what its role requires; not_found for an agent that is not deployed. Contract: kernel-1.md 12
 */
export async function checkRoster({ tx, scope }: Change, roster: Roster, roles: readonly Role[]): Promise<void> {
  refuseRepeated(roster.map(({ id }) => `roster member ${id}`))
  refuseRepeated(roster.map(({ agentDeploymentId }) => `agent ${agentDeploymentId}`))
  for (const { id, roleId } of roster) {
    if (!roles.some((role) => role.id === roleId))
      throw invalid(`roster member ${id}: ${roleId} is no role of the team`)
  }
  for (const { id, minimumMembers = 0, maximumMembers = Infinity } of roles) {
    const members = roster.filter(({ roleId }) => roleId === id).length
    if (members < minimumMembers) throw invalid(`role ${id} has ${members} members and needs ${minimumMembers}`)
    if (members > maximumMembers) throw invalid(`role ${id} has ${members} members and takes ${maximumMembers}`)
  }
  if (roster.length === 0) return
  const agents = await listDeployed(tx, 'agent', scope, { ids: roster.map((member) => member.agentDeploymentId) })
  const definitions = new Map(agents.map(({ deployment, definition }) => [deployment.id, definition]))
  for (const { id, roleId, agentDeploymentId } of roster) {
    const definition = definitions.get(agentDeploymentId)
    if (!definition) throw notFound('agent deployment', agentDeploymentId)
    const role = roles.find((one) => one.id === roleId)
    const allowed = role?.requiredDefinitionIds ?? []
    if (allowed.length > 0 && !allowed.some((one) => scopedId(scope, one) === definition.id)) {
      throw invalid(`roster member ${id}: role ${roleId} requires another definition than ${definition.id}`)
    }
    const skills = [...definition.skillRequirements, ...(role?.skillGrants ?? [])].map(({ skillId }) => skillId)
    const missing = role?.requiredSkillIds.find((skillId) => !skills.includes(skillId))
    if (missing !== undefined) throw invalid(`roster member ${id}: role ${roleId} requires the skill ${missing}`)
  }
}

function refuseRepeated(names: readonly string[]): void {
  const repeated = names.find((name, i) => names.indexOf(name) !== i)
  if (repeated !== undefined) throw invalid(`${repeated} is there twice`)
}
