import type { Change } from '../change.ts'
import { conflict } from '../errors.ts'
import { findOnStack, findStacked, findTop, wasActive, type Stacked } from '../store/activations.ts'
import { refuseRunning } from './activate.ts'
import { agents } from './agents.ts'
import { readDefinition } from './family.ts'
import { openDeployment, saveStep, withVersion, type StepRequest, type Stepped } from './step.ts'

/**
 * Goes back to the version below the one that runs, or down to a named one: what lay above is off the stack, so that the next
 * rollback goes on from there. A named version that is off the stack already takes the place of the one that runs.
 * @throws forbidden for an agent; conflict when nothing lies below, or the version never ran. Contract: kernel-1.md 11
 */
export async function rollBack(
  change: Change,
  id: string,
  request: StepRequest & { toVersion?: string },
): Promise<Stepped<'agent'>> {
  const { current, actor } = await openDeployment(change, agents, id, request)
  const { toVersion, reason } = request
  if (toVersion !== undefined) refuseRunning(current, toVersion)
  const { version, below } = await findTarget(change, id, toVersion)
  const definition = await readDefinition(change.tx, agents.name, change.scope, { id: current.definitionId, version })
  const next = withVersion<'agent'>(current, version)
  return saveStep(change, agents, {
    before: current,
    next,
    definition,
    changeKind: 'rolled-back',
    actor,
    reason,
    below,
  })
}

async function findTarget({ tx, scope }: Change, deploymentId: string, version: string | undefined): Promise<Stacked> {
  const { name } = agents
  const below = (await findTop(tx, name, scope, deploymentId))?.below ?? null
  if (version === undefined) {
    const target = below === null ? undefined : await findStacked(tx, name, scope, deploymentId, below)
    if (!target) throw conflict(`no version lies below the active one of ${deploymentId}`)
    return target
  }
  const target = below === null ? undefined : await findOnStack(tx, name, scope, { deploymentId, from: below, version })
  if (target) return target
  if (await wasActive(tx, name, scope, deploymentId, version)) return { version, below }
  throw conflict(`version ${version} was never active on ${deploymentId}`)
}
