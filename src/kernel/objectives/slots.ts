import type { Change } from '../change.ts'
import type { Objective } from '../model/objective.ts'
import { resourceSlot, setSlot } from '../store/slots.ts'

/** Keeps what admission counts as the objective says: none of its runs is claimed while it is not active. */
export async function setObjectiveSlots(
  { tx, scope }: Change,
  objective: Objective,
  before?: Objective,
): Promise<void> {
  const { id, status, executionPolicy } = objective
  const capacity = executionPolicy?.maximumConcurrentRuns ?? 0
  await setSlot(tx, scope, {
    kind: 'objective',
    name: id,
    capacity: capacity === 0 ? null : capacity,
    closed: status !== 'active',
  })
  const bounds = executionPolicy?.resourceCapacities ?? {}
  const resources = new Set([...Object.keys(bounds), ...Object.keys(before?.executionPolicy?.resourceCapacities ?? {})])
  for (const resource of [...resources].sort()) {
    const name = resourceSlot(id, resource)
    await setSlot(tx, scope, { kind: 'resource', name, capacity: bounds[resource] ?? null, closed: false })
  }
}
