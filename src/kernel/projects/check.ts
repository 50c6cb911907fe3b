import type { Change } from '../change.ts'
import { invalid, notFound } from '../errors.ts'
import type { Project } from '../model/project.ts'
import { readOwners } from '../store/objectives.ts'

/** @throws not_found for an objective that is absent; invalid for one of another owner. Contract: kernel-1.md 4 */
export async function checkObjectives(
  { tx, scope }: Change,
  { owner, objectiveRefs }: Pick<Project, 'owner' | 'objectiveRefs'>,
): Promise<void> {
  const owners = await readOwners(tx, scope, objectiveRefs)
  for (const id of objectiveRefs) {
    const other = owners.get(id)
    if (!other) throw notFound('objective', id)
    if (other.type !== owner.type || other.id !== owner.id) {
      throw invalid(`objectiveRefs: objective ${id} has another owner`)
    }
  }
}
