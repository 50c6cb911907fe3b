import type { Queryable } from '../../database/database.ts'
import type { Attribution, Change } from '../change.ts'
import { conflict, forbidden, notFound } from '../errors.ts'
import type { Manifests } from '../model/definition.ts'
import type { Deployments } from '../model/deployment.ts'
import type { Party, Scope } from '../model/fields.ts'
import { findDefinition, type Definition, type FamilyName } from '../store/definitions.ts'
import type { Family } from '../store/records.ts'

/** A deployment sent back in full: what the kernel keeps of it may be missing. */
export type Replacement<F extends FamilyName> = Partial<Deployments[F]> &
  Omit<Deployments[F], 'scope' | 'revision' | 'createdAt' | 'updatedAt' | 'activation'>

/** What agents and teams differ in; all other rules of the registry are the same. Contract: kernel-1.md 11, 12 */
export interface RegistryFamily<F extends FamilyName> {
  readonly name: F
  readonly deployments: Family<Deployments[F]>
  /** Where a client may move a deployment from each state; from the last to none. */
  readonly moves: Readonly<Record<string, readonly string[]>>
  stateOf(deployment: Deployments[F]): string
  /** What of a deployment is the kernel's: sent back as it was read, or not at all. */
  readonly frozen: readonly (keyof Deployments[F])[]
  /** What was checked against it takes the place of a deployment. */
  replaced(current: Deployments[F], given: Replacement<F>): Deployments[F]
  /** Why a manifest contradicts itself. */
  flaw(manifest: Manifests[F]): string | undefined
  /** @throws invalid when a deployment does not fit its definition, as far as it says so anew since `before` */
  checkFit(change: Change, fit: Fit<F>): Promise<void>
  /** Whether a candidate may do more than what it is to follow. */
  widens(base: Manifests[F], candidate: Manifests[F]): boolean
  /** What else follows in the transaction that wrote a deployment. */
  saved(change: Change, deployment: Deployments[F], definition: Definition<F>): Promise<void>
}

export interface Fit<F extends FamilyName> {
  deployment: Deployments[F]
  definition: Definition<F>
  before?: Deployments[F]
}

/** Who does it, as a body claims; the host knows better. Contract: kernel-1.md 1.3 */
export const actorOf = (by: Attribution, claimed: { actorType: string; actorId: string }): Party =>
  by.actorSource === 'host' ? by.actor : { type: claimed.actorType, id: claimed.actorId }

/** @throws forbidden for an agent: it proposes amendments instead */
export function refuseAgent({ type, id }: Party): void {
  if (type === 'agent') throw forbidden(`agent ${id} may not change deployments: it can propose an amendment`)
}

/** @throws conflict when nothing moves a deployment any more */
export function refuseFinal<F extends FamilyName>(family: RegistryFamily<F>, deployment: Deployments[F]): void {
  const state = family.stateOf(deployment)
  if (family.moves[state]?.length === 0) throw conflict(`${family.deployments.noun} ${deployment.id} is ${state}`)
}

/** @throws not_found */
export async function readDefinition<F extends FamilyName>(
  db: Queryable,
  family: F,
  scope: Scope,
  { id, version }: { id: string; version: string },
): Promise<Definition<F>> {
  const definition = await findDefinition(db, family, scope, id, version)
  if (!definition) throw notFound(`${family} definition`, `${id} version ${version}`)
  return definition
}
