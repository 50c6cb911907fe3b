import type { Change } from '../change.ts'
import { conflict } from '../errors.ts'
import type { FamilyName } from '../store/definitions.ts'
import { readRecord } from '../store/records.ts'
import { readDefinition, type RegistryFamily } from './family.ts'
import { openDeployment, saveStep, withVersion, type StepRequest, type Stepped } from './step.ts'

/**
 * Makes a registered version the one that runs.
 * @throws not_found for an unknown version; forbidden for an agent; conflict when it runs already. Contract: kernel-1.md 11, 12
 */
export async function activateVersion<F extends FamilyName>(
  change: Change,
  family: RegistryFamily<F>,
  id: string,
  request: StepRequest & { version: string },
): Promise<Stepped<F>> {
  const { tx, scope } = change
  const { version, reason } = request
  const { definitionId } = await readRecord(tx, family.deployments, scope, id)
  // What is not there is told before who may do it, and when.
  const definition = await readDefinition(tx, family.name, scope, { id: definitionId, version })
  const { current, actor } = await openDeployment(change, family, id, request)
  refuseRunning(current, version)
  const next = withVersion(current, version)
  await family.checkFit(change, { deployment: next, definition, before: current })
  return saveStep(change, family, { before: current, next, definition, changeKind: 'activated', actor, reason })
}

/** @throws conflict when the version runs already */
export function refuseRunning({ id, activeVersion }: { id: string; activeVersion: string }, version: string): void {
  if (version === activeVersion) throw conflict(`version ${version} is active on ${id} already`)
}
