import { canonicalJson } from '../../base/canonical-json.ts'
import type { Change } from '../change.ts'
import { conflict, invalid } from '../errors.ts'
import type { Deployments } from '../model/deployment.ts'
import type { FamilyName } from '../store/definitions.ts'
import { readDefinition, type RegistryFamily, type Replacement } from './family.ts'
import { openDeployment, saveStep, type StepRequest, type Stepped } from './step.ts'

export type ReplaceRequest<F extends FamilyName> = StepRequest & { deployment: Replacement<F> }

/**
 * Puts a deployment in the place of the one that is there: its state, its configuration, of a team also version and roster.
 * @throws invalid for what is frozen, does not fit the definition, or changes nothing; not_found; forbidden for an agent;
 * conflict when it is final, at another revision, or cannot move there. Contract: kernel-1.md 11, 12
 */
export async function replaceDeployment<F extends FamilyName>(
  change: Change,
  family: RegistryFamily<F>,
  id: string,
  request: ReplaceRequest<F>,
): Promise<Stepped<F>> {
  const { deployment: given, reason } = request
  if (given.id !== id) throw invalid(`deployment.id: ${given.id} is not the ${id} of the path`)
  const { current, actor } = await openDeployment(change, family, id, request)
  refuseFrozen(family, current, given)
  const next = family.replaced(current, given)
  if (canonicalJson(next) === canonicalJson(current)) throw invalid('the deployment is so already: nothing changes')
  checkMove(family, current, next)
  const definition = await readDefinition(change.tx, family.name, change.scope, {
    id: current.definitionId,
    version: next.activeVersion,
  })
  await family.checkFit(change, { deployment: next, definition, before: current })
  const changeKind = next.activeVersion === current.activeVersion ? 'configuration-updated' : 'activated'
  return saveStep(change, family, { before: current, next, definition, changeKind, actor, reason })
}

function refuseFrozen<F extends FamilyName>(
  { frozen }: RegistryFamily<F>,
  current: Deployments[F],
  given: Replacement<F>,
): void {
  const changed = frozen.find(
    (field) => given[field] !== undefined && canonicalJson(given[field]) !== canonicalJson(current[field] ?? null),
  )
  if (changed !== undefined)
    throw invalid(`deployment.${String(changed)} cannot be changed by replacing the deployment`)
}

/** @throws conflict for a state that a client cannot bring a deployment to */
export function checkMove<F extends FamilyName>(
  family: RegistryFamily<F>,
  current: Deployments[F],
  next: Deployments[F],
): void {
  const [from, to] = [family.stateOf(current), family.stateOf(next)]
  if (from !== to && !family.moves[from]?.includes(to)) {
    throw conflict(`${family.deployments.noun} ${current.id} cannot go from ${from} to ${to}`)
  }
}
