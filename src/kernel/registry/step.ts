import type { Change } from '../change.ts'
import { expectRevision } from '../errors.ts'
import type { ActivationRecord, Deployments } from '../model/deployment.ts'
import type { Party } from '../model/fields.ts'
import { findTop, insertActivation } from '../store/activations.ts'
import type { Definition, FamilyName } from '../store/definitions.ts'
import { insertRecord, lockRecord, saveRecord } from '../store/records.ts'
import { actorOf, refuseAgent, refuseFinal, type RegistryFamily } from './family.ts'

/** What every step of a deployment says of itself. */
export interface StepRequest {
  expectedRevision: number
  actorType: string
  actorId: string
  reason?: string
}

/** @throws not_found; forbidden for an agent; conflict when it is final or at another revision */
export async function openDeployment<F extends FamilyName>(
  { tx, scope, by }: Change,
  family: RegistryFamily<F>,
  id: string,
  request: StepRequest,
): Promise<{ current: Deployments[F]; actor: Party }> {
  const current = await lockRecord(tx, family.deployments, scope, id)
  const actor = actorOf(by, request)
  refuseAgent(actor)
  refuseFinal(family, current)
  expectRevision(request.expectedRevision, current.revision)
  return { current, actor }
}

/** The same deployment, running another version. */
export const withVersion = <F extends FamilyName>(current: Deployments[F], version: string): Deployments[F] =>
  current.activeVersion === version
    ? current
    : { ...current, activeVersion: version, previousVersion: current.activeVersion }

interface Step<F extends FamilyName> {
  /** None for the first step. */
  before?: Deployments[F]
  next: Deployments[F]
  definition: Definition<F>
  changeKind: ActivationRecord['changeKind']
  actor: Party
  reason: string | undefined
  /** Of a rollback, which pops: what lies below the version it comes to. */
  below?: number | null
}

export interface Stepped<F extends FamilyName> {
  deployment: Deployments[F]
  activation: ActivationRecord
}

/** Writes a deployment in its next state with the record of the step: T13. Contract: kernel-1.md 11, 14.4 */
export async function saveStep<F extends FamilyName>(
  change: Change,
  family: RegistryFamily<F>,
  step: Step<F>,
): Promise<Stepped<F>> {
  const { tx, scope, now, at, context } = change
  const { before, next, definition, changeKind, actor, reason } = step
  const below = step.below === undefined ? await belowNext(change, family, step) : step.below
  const deployment = before
    ? await saveRecord(tx, family.deployments, next, now)
    : await insertRecord(tx, family.deployments, next)
  const activation: ActivationRecord = {
    scope,
    id: context.newId(),
    deploymentId: deployment.id,
    definitionId: deployment.definitionId,
    ...(before && { fromVersion: before.activeVersion }),
    toVersion: deployment.activeVersion,
    deploymentRevision: deployment.revision,
    changeKind,
    ...(reason !== undefined && { reason }),
    actorType: actor.type,
    actorId: actor.id,
    createdAt: at,
  }
  await insertActivation(tx, family.name, activation, below)
  await family.saved(change, deployment, definition)
  return { deployment, activation }
}

/** A new version lies upon the one that ran; a changed configuration takes its place. */
async function belowNext<F extends FamilyName>(
  { tx, scope }: Change,
  family: RegistryFamily<F>,
  { before, next }: Step<F>,
): Promise<number | null> {
  const top = before && (await findTop(tx, family.name, scope, before.id))
  if (!top) return null
  return top.version === next.activeVersion ? top.below : top.revision
}
