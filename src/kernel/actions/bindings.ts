import type { Queryable } from '../../database/database.ts'
import type { Change } from '../change.ts'
import { conflict, expectRevision, invalid, KernelError, notFound } from '../errors.ts'
import type { Risk } from '../model/action.ts'
import type { Binding, LifecycleEntry, PutBinding } from '../model/binding.ts'
import type { Creation, Scope } from '../model/fields.ts'
import { exceeds } from '../policy.ts'
import { bindings, findBinding, listBindings, type BindingOwner, type KeptBinding } from '../store/bindings.ts'
import { findDefinition } from '../store/definitions.ts'
import { agentDeployments, teamDeployments } from '../store/deployments.ts'
import { findRecord, insertRecord, readRecord, saveRecord } from '../store/records.ts'
import { checkBinding } from './check-binding.ts'
import { agentRisks, skillRefusal } from './resolve.ts'

/** Skills given to deployments. Contract: kernel-2.md 2 */

/** A binding as it is shown. */
export const shownBinding = ({ family: _, ...binding }: KeptBinding): Binding => binding

/** All of a deployment, disabled ones too. @throws not_found without the deployment */
export async function readBindings(db: Queryable, scope: Scope, owner: BindingOwner): Promise<Binding[]> {
  await readLimits(db, scope, owner)
  return (await listBindings(db, scope, owner)).map(shownBinding)
}

/** @throws not_found */
export async function readBinding(db: Queryable, scope: Scope, owner: BindingOwner, id: string): Promise<KeptBinding> {
  const binding = await findBinding(db, scope, owner, id)
  if (!binding) throw notFound(bindings.noun, id)
  return binding
}

export interface PutOptions extends BindingOwner {
  id: string
  creation: Creation
}

/**
 * Creates a binding at `expectedRevision` 0, else changes it; a disabled one is enabled by that.
 * @throws not_found for deployment or skill; invalid for what does not fit the skill or the deployment; conflict
 */
export async function putBinding(
  change: Change,
  { family, deploymentId, id, creation }: PutOptions,
  { binding: given, expectedRevision, reason }: PutBinding,
): Promise<KeptBinding> {
  const { tx, scope, at, now, context } = change
  if (!context.actions) throw new KernelError('not_configured', 'skill catalog is not configured')
  if ((given.id ?? id) !== id) throw invalid('binding.id is not that of the path')
  if ((given.deploymentId ?? deploymentId) !== deploymentId)
    throw invalid('binding.deploymentId is not that of the path')
  const limits = await readLimits(tx, scope, { family, deploymentId })
  const { skillId, skillVersion, sourceIdentity, allowedActions, enablePrompt, maximumRisk } = given
  const { argumentRestrictions, credentials, config } = given
  const fields = {
    skillId,
    skillVersion,
    ...(sourceIdentity !== undefined && { sourceIdentity }),
    allowedActions,
    enablePrompt,
    maximumRisk,
    argumentRestrictions,
    credentials,
    config,
  }
  const skill = context.actions.catalog.find(skillId, skillVersion, sourceIdentity)
  if (!skill) throw notFound('skill', `${skillId} ${skillVersion}`)
  checkBinding(fields, skill)
  checkLimits(fields, limits)
  const before = await findRecord(tx, bindings, scope, id)
  if (before && (before.family !== family || before.deploymentId !== deploymentId)) {
    throw expectedRevision === 0 ? conflict(`${bindings.noun} ${id} exists already`) : notFound(bindings.noun, id)
  }
  if (before && !isSameSkill(before, fields))
    throw invalid('binding.skillId and skillVersion cannot be changed: upgrade it')
  if (limits.isFinal) throw conflict(`${family} deployment ${deploymentId} is at its end`)
  expectRevision(expectedRevision, before?.revision ?? 0)
  const entry = (revision: number, action: LifecycleEntry['action']): LifecycleEntry[] => [
    ...(before?.lifecycle ?? []),
    { revision, action, actor: change.by.actor, reason, at },
  ]
  if (!before) {
    const lifecycle = entry(1, 'created')
    const made = { ...fields, ...creation, scope, id, family, deploymentId, disabled: false, lifecycle }
    const binding = await insertRecord(tx, bindings, { ...made, revision: 1, createdAt: at, updatedAt: at })
    report(change, binding)
    return binding
  }
  const { sourceIdentity: _, ...kept } = before
  const lifecycle = entry(before.revision + 1, before.disabled ? 'enabled' : 'updated')
  const binding = await saveRecord(tx, bindings, { ...kept, ...fields, disabled: false, lifecycle }, now)
  report(change, binding)
  return binding
}

const isSameSkill = (a: Pick<Binding, 'skillId' | 'skillVersion' | 'sourceIdentity'>, b: typeof a): boolean =>
  a.skillId === b.skillId && a.skillVersion === b.skillVersion && a.sourceIdentity === b.sourceIdentity

/** @throws not_found; conflict when it is disabled, or of another revision */
export async function disableBinding(
  change: Change,
  owner: BindingOwner,
  id: string,
  { expectedRevision, reason }: { expectedRevision: number; reason: string },
): Promise<KeptBinding> {
  const { tx, scope, at, now } = change
  await readLimits(tx, scope, owner)
  const before = await readBinding(tx, scope, owner, id)
  if (before.disabled) throw conflict(`${bindings.noun} ${id} is disabled already`)
  expectRevision(expectedRevision, before.revision)
  const entry: LifecycleEntry = {
    revision: before.revision + 1,
    action: 'disabled',
    actor: change.by.actor,
    reason,
    at,
  }
  const disabled = { ...before, disabled: true, lifecycle: [...before.lifecycle, entry] }
  const binding = await saveRecord(tx, bindings, disabled, now)
  report(change, binding)
  return binding
}

/** What bounds the bindings of a deployment. */
interface Limits {
  risks: readonly { of: string; risk: Risk }[]
  refusal: (skillId: string) => string | undefined
  /** Nothing is given to a deployment at its end. */
  isFinal: boolean
}

/** @throws not_found without the deployment */
async function readLimits(db: Queryable, scope: Scope, { family, deploymentId }: BindingOwner): Promise<Limits> {
  if (family === 'agent') {
    const deployment = await readRecord(db, agentDeployments, scope, deploymentId)
    const definition = await findDefinition(db, 'agent', scope, deployment.definitionId, deployment.activeVersion)
    if (!definition) throw new Error(`agent deployment ${deploymentId} has no definition`)
    const agent = { deployment, definition }
    const isFinal = deployment.rolloutStatus === 'retired'
    return { risks: agentRisks(agent), refusal: (skillId) => skillRefusal(agent, skillId), isFinal }
  }
  const { restrictions, ...team } = await readRecord(db, teamDeployments, scope, deploymentId)
  const definition = await findDefinition(db, 'team', scope, team.definitionId, team.activeVersion)
  if (!definition) throw new Error(`team deployment ${deploymentId} has no definition`)
  const { maximumRisk, allowedSkillIds } = restrictions
  return {
    risks: [
      ...(maximumRisk ? [{ of: 'deployment', risk: maximumRisk }] : []),
      { of: 'definition', risk: definition.approvals.maximumRisk },
    ],
    refusal: (skillId) =>
      allowedSkillIds?.includes(skillId) === false
        ? `skill ${skillId} is not allowed to team deployment ${deploymentId}`
        : undefined,
    isFinal: team.status === 'archived',
  }
}

/** @throws invalid */
function checkLimits(
  { skillId, maximumRisk }: Pick<Binding, 'skillId' | 'maximumRisk'>,
  { risks, refusal }: Limits,
): void {
  const refused = refusal(skillId)
  if (refused !== undefined) throw invalid(`binding.skillId: ${refused}`)
  const exceeded = risks.find(({ risk }) => exceeds(maximumRisk, risk))
  if (exceeded) throw invalid(`binding.maximumRisk ${maximumRisk} is above the ${exceeded.risk} of the ${exceeded.of}`)
}

function report(
  change: Change,
  { family, deploymentId, id, skillId, skillVersion, revision, lifecycle }: KeptBinding,
): void {
  const action = lifecycle.at(-1)?.action ?? 'updated'
  change.report({
    ...(family === 'agent' ? { agentId: deploymentId } : { teamId: deploymentId }),
    eventType: `skill.binding_${action}`,
    summary: `Skill binding ${id} ${action}`,
    payload: { bindingId: id, bindingRevision: revision, skillId, skillVersion },
  })
}
