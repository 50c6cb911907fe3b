import type * as z from 'zod'
import { aboutObjective, type Change } from '../change.ts'
import type { createObjective as createBody, Objective } from '../model/objective.ts'
import type { Creation } from '../model/fields.ts'
import { objectives } from '../store/objectives.ts'
import { insertRecord } from '../store/records.ts'
import { setObjectiveSlots } from './slots.ts'

/** Makes an objective, in any state. Contract: kernel-1.md 3 */
export async function createObjective(
  change: Change,
  { actor: _a, scope: _s, idempotencyKey: _k, ...fields }: z.infer<typeof createBody>,
  creation: Creation,
): Promise<Objective> {
  const { tx, scope, at, context } = change
  const objective = await insertRecord(tx, objectives, {
    scope,
    id: context.newId(),
    revision: 1,
    createdAt: at,
    updatedAt: at,
    ...fields,
    budgetAllocations: {},
    ...creation,
  })
  await setObjectiveSlots(change, objective)
  change.report({
    ...aboutObjective(objective),
    eventType: 'objective.created',
    summary: `Created: ${objective.title}`,
    payload: { status: objective.status, revision: objective.revision },
  })
  return objective
}
