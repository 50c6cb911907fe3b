import type { KernelContext } from '../context.ts'
import type { SideEffect } from '../model/action.ts'
import type { OfferedAction, OfferedSkill } from '../model/envelope.ts'
import type { Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { transportOf } from '../model/skill.ts'
import { exceeds } from '../policy.ts'
import { listBindings } from '../store/bindings.ts'
import { schemaForModel } from './arguments.ts'
import { actionName } from './propose.ts'
import { bindingOwners, resolveBound, skillOf, type Agent } from './resolve.ts'

/** What an agent can do. Contract: kernel-1.md 14.3, kernel-2.md 2 */

/** What the next turn of a run is offered: prompts of skills, and actions that nothing rules out beforehand. */
export async function offerSkills(
  { actions: parts, store: { database } }: KernelContext,
  run: Run,
  agent: Agent,
): Promise<{ skills: OfferedSkill[]; actions: OfferedAction[] }> {
  const skills = new Map<string, OfferedSkill>()
  const actions: OfferedAction[] = []
  if (!parts) return { skills: [], actions }
  for (const owner of bindingOwners(run, agent)) {
    for (const binding of await listBindings(database, run.scope, owner, { enabled: true })) {
      const skill = skillOf(parts.catalog, binding)
      const skillRef = `${binding.skillId}@${binding.skillVersion}`
      if (binding.enablePrompt && skill?.prompt && !skill.prompt.disableModelInvocation) {
        skills.set(skillRef, { skillRef, instructions: skill.prompt.instructions })
      }
      for (const name of binding.allowedActions) {
        const resolved = await resolveBound(database, parts, run, agent, { binding, name })
        if (typeof resolved === 'string') continue
        const { action, transport, bounds } = resolved
        const isTooRisky = bounds.maximumRisks.some((maximum) => exceeds(action.risk, maximum.risk))
        if (isTooRisky || bounds.withheld !== undefined || !bounds.allowedActions.includes(name)) continue
        actions.push({
          bindingId: binding.id,
          skillId: binding.skillId,
          action: name,
          description: action.description,
          inputSchema: schemaForModel(action, transport, binding.config),
          risk: action.risk,
        })
      }
    }
  }
  return { skills: [...skills.values()], actions }
}

export interface SkillActionItem extends Omit<OfferedAction, 'risk'> {
  name: string
  bindingRevision: number
  deploymentId: string
  version: string
  semanticArguments: Record<string, string>
  risk: string
  sideEffect: SideEffect
}

export interface SkillActionFilter {
  semanticRole?: readonly string[]
  sideEffect?: readonly SideEffect[]
}

/** The actions of an agent's enabled bindings that can be carried out here, by name and binding. */
export async function listSkillActions(
  { actions: parts, store: { database } }: KernelContext,
  scope: Scope,
  deploymentId: string,
  { semanticRole: roles, sideEffect: effects }: SkillActionFilter,
): Promise<SkillActionItem[]> {
  if (!parts) return []
  const items: SkillActionItem[] = []
  for (const binding of await listBindings(database, scope, { family: 'agent', deploymentId }, { enabled: true })) {
    const skill = skillOf(parts.catalog, binding)
    for (const name of binding.allowedActions) {
      const action = skill?.actions[name]
      const transport = skill && action && transportOf(skill, action)
      if (!transport || !Object.hasOwn(parts.transports, transport.kind)) continue
      const { semanticArguments, sideEffect, description, inputSchema, risk } = action
      if (roles?.length && !roles.some((role) => Object.hasOwn(semanticArguments, role))) continue
      if (effects?.length && !effects.includes(sideEffect)) continue
      items.push({
        name: actionName(binding.skillId, name),
        description,
        bindingId: binding.id,
        bindingRevision: binding.revision,
        deploymentId,
        skillId: binding.skillId,
        version: binding.skillVersion,
        action: name,
        inputSchema,
        semanticArguments,
        risk,
        sideEffect,
      })
    }
  }
  return items.sort((a, b) => compare(a.name, b.name) || compare(a.bindingId, b.bindingId))
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
