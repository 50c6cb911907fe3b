import type { Queryable } from '../../database/database.ts'
import type { ActionParts } from '../context.ts'
import { KernelError } from '../errors.ts'
import type { Run } from '../model/run.ts'
import { transportOf, type SkillAction, type SkillDefinition, type Transport } from '../model/skill.ts'
import type { Bounds } from '../policy.ts'
import type { SkillCatalog } from '../ports.ts'
import { findBinding, type BindingOwner, type KeptBinding } from '../store/bindings.ts'
import { findDefinition } from '../store/definitions.ts'
import { teamDeployments, type Deployed } from '../store/deployments.ts'
import { findRecord } from '../store/records.ts'

/** From the name of an action to what it is, and what bounds it. Contract: kernel-1.md 13, 14.1 */

export type Agent = Deployed<'agent'>

export interface ResolvedAction {
  binding: KeptBinding
  skill: SkillDefinition
  action: SkillAction
  transport: Transport
  bounds: Bounds
}

/** Whose bindings a run may use: those of the agent, and of the team it works for. */
export const bindingOwners = (run: Run, { deployment }: Agent): BindingOwner[] => [
  { family: 'agent', deploymentId: deployment.id },
  ...(run.owner.type === 'team' ? [{ family: 'team' as const, deploymentId: run.owner.id }] : []),
]

/** What a run means by binding and action, or why there is no such thing. */
export async function resolveAction(
  db: Queryable,
  parts: ActionParts,
  run: Run,
  agent: Agent,
  wanted: { bindingId: string; action: string },
): Promise<ResolvedAction | string> {
  let binding: KeptBinding | undefined
  for (const owner of bindingOwners(run, agent)) binding ??= await findBinding(db, run.scope, owner, wanted.bindingId)
  if (!binding) return `there is no skill binding ${wanted.bindingId}`
  return resolveBound(db, parts, run, agent, { binding, name: wanted.action })
}

/** The same for an action of a binding that was read already. */
export async function resolveBound(
  db: Queryable,
  { catalog, transports }: ActionParts,
  run: Run,
  agent: Agent,
  { binding, name }: { binding: KeptBinding; name: string },
): Promise<ResolvedAction | string> {
  const skill = skillOf(catalog, binding)
  if (!skill) return `skill ${binding.skillId} ${binding.skillVersion} is not there`
  const action = Object.hasOwn(skill.actions, name) ? skill.actions[name] : undefined
  const transport = action && transportOf(skill, action)
  if (!action || !transport) return `skill ${skill.id} has no action ${name}`
  if (!Object.hasOwn(transports, transport.kind)) return `nothing here carries out actions by ${transport.kind}`
  return { binding, skill, action, transport, bounds: await boundsOf(db, run, agent, binding, action.name) }
}

/** The skill of a binding; undefined where it is gone, or is one of several by now. */
export function skillOf(
  catalog: SkillCatalog,
  { skillId, skillVersion, sourceIdentity }: KeptBinding,
): SkillDefinition | undefined {
  try {
    return catalog.find(skillId, skillVersion, sourceIdentity)
  } catch (error) {
    if (error instanceof KernelError) return undefined
    throw error
  }
}

async function boundsOf(db: Queryable, run: Run, agent: Agent, binding: KeptBinding, action: string): Promise<Bounds> {
  const team = run.owner.type === 'team' ? await teamBounds(db, run, agent, binding, action) : undefined
  const withheld = skillRefusal(agent, binding.skillId) ?? team?.withheld
  const { requireApprovalAt } = agent.definition.authority
  return {
    enabled: !binding.disabled,
    ...(withheld !== undefined && { withheld }),
    allowedActions: binding.allowedActions,
    maximumRisks: [{ of: 'binding', risk: binding.maximumRisk }, ...agentRisks(agent), ...(team?.maximumRisks ?? [])],
    argumentRestrictions: binding.argumentRestrictions[action] ?? {},
    ...(requireApprovalAt && { requireApprovalAt }),
  }
}

/** The greatest risks that an agent may take. */
export const agentRisks = ({ deployment, definition }: Agent): Bounds['maximumRisks'] => [
  ...(deployment.restrictions.maximumRisk ? [{ of: 'deployment', risk: deployment.restrictions.maximumRisk }] : []),
  { of: 'definition', risk: definition.authority.maximumRisk },
]

/** Why an agent may not have a skill at all. A definition that lists none allows each. */
export function skillRefusal({ deployment, definition }: Agent, skillId: string): string | undefined {
  const { allowedSkillIds } = definition.authority
  const isAllowed =
    (allowedSkillIds.length === 0 || allowedSkillIds.includes(skillId)) &&
    (deployment.restrictions.allowedSkillIds?.includes(skillId) ?? true)
  return isAllowed ? undefined : `skill ${skillId} is not allowed to agent deployment ${deployment.id}`
}

/** What the team adds for its members: its own skills only by a grant of their role, all within its greatest risk. */
async function teamBounds(
  db: Queryable,
  { scope, owner: { id: teamId } }: Run,
  { deployment: agent }: Agent,
  { family, skillId, skillVersion }: KeptBinding,
  action: string,
): Promise<Pick<Bounds, 'maximumRisks' | 'withheld'>> {
  const team = await findRecord(db, teamDeployments, scope, teamId)
  const definition = team && (await findDefinition(db, 'team', scope, team.definitionId, team.activeVersion))
  const member = team?.roster.find(({ agentDeploymentId }) => agentDeploymentId === agent.id)
  const role = definition?.roles.find(({ id }) => id === member?.roleId)
  if (!team || !definition || !role) return { withheld: `${agent.id} is no member of team ${teamId}`, maximumRisks: [] }
  const grant = role.skillGrants.find((one) => one.skillId === skillId && one.skillVersion === skillVersion)
  const { maximumRisk, allowedSkillIds } = team.restrictions
  const isAllowed = allowedSkillIds?.includes(skillId) ?? true
  const isGranted = grant ? grant.allowedActions.includes(action) : family === 'agent'
  return {
    ...(!isGranted && { withheld: `role ${role.id} of team ${teamId} does not grant ${action} of skill ${skillId}` }),
    ...(!isAllowed && { withheld: `skill ${skillId} is not allowed to team deployment ${teamId}` }),
    maximumRisks: [
      { of: 'team', risk: definition.approvals.maximumRisk },
      ...(maximumRisk ? [{ of: 'team deployment', risk: maximumRisk }] : []),
      ...(grant ? [{ of: 'role grant', risk: grant.maximumRisk }] : []),
    ],
  }
}
