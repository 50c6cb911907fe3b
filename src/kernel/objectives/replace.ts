import type * as z from 'zod'
import { canonicalJson } from '../../base/canonical-json.ts'
import { accountOfObjective, checkCovers } from '../budgets.ts'
import { aboutObjective, type Change } from '../change.ts'
import { conflict, expectRevision, invalid } from '../errors.ts'
import type { Objective, ObjectiveStatus, replaceObjective as replaceBody } from '../model/objective.ts'
import { objectives } from '../store/objectives.ts'
import { lockRecord, saveRecord } from '../store/records.ts'
import { setObjectiveSlots } from './slots.ts'

/** Where a PUT may move an objective. */
export const OBJECTIVE_MOVES: Record<ObjectiveStatus, readonly ObjectiveStatus[]> = {
  draft: ['active', 'retired'],
  active: ['paused', 'satisfied', 'failed', 'retired'],
  paused: ['active', 'failed', 'retired'],
  satisfied: [],
  failed: [],
  retired: [],
}

/**
 * Replaces what an objective says; an absent status stays.
 * @throws not_found; invalid for another owner, or when nothing would change; conflict for an objective at its end, an illegal
 * move, another revision or a budget below what runs were given. Contract: kernel-1.md 3
 */
export async function replaceObjective(
  change: Change,
  id: string,
  { actor: _a, scope: _s, expectedRevision, owner, status, ...content }: z.infer<typeof replaceBody>,
): Promise<Objective> {
  const { tx, scope, now } = change
  const before = await lockRecord(tx, objectives, scope, id)
  if (owner && (owner.type !== before.owner.type || owner.id !== before.owner.id)) {
    throw invalid('owner: an objective keeps its owner')
  }
  checkMove(before.status, status ?? before.status)
  expectRevision(expectedRevision, before.revision)
  const next = replaced(before, { ...content, status: status ?? before.status })
  const isMoved = next.status !== before.status
  const isUpdated = canonicalJson(next) !== canonicalJson({ ...before, status: next.status })
  if (!isMoved && !isUpdated) throw invalid('nothing would change')
  checkCovers(accountOfObjective(next))
  const saved = await saveRecord(tx, objectives, next, now)
  await setObjectiveSlots(change, saved, before)
  const about = aboutObjective(saved)
  const payload = { status: saved.status, revision: saved.revision }
  if (isUpdated) {
    change.report({ ...about, eventType: 'objective.updated', summary: `Updated: ${saved.title}`, payload })
  }
  if (isMoved) {
    change.report({
      ...about,
      eventType: 'objective.status_changed',
      summary: `${before.status} became ${saved.status}`,
      payload: { ...payload, previousStatus: before.status },
    })
  }
  return saved
}

function checkMove(from: ObjectiveStatus, to: ObjectiveStatus): void {
  if (OBJECTIVE_MOVES[from].length === 0) throw conflict(`objective is ${from}: it cannot change any more`)
  if (from !== to && !OBJECTIVE_MOVES[from].includes(to)) throw conflict(`a ${from} objective cannot become ${to}`)
}

/** Of the old one only what no client sets. */
const replaced = (
  { scope, id, revision, createdAt, updatedAt, idempotencyKeyHash, creationFingerprint, owner, ...old }: Objective,
  content: Omit<z.infer<typeof replaceBody>, 'expectedRevision' | 'owner'> & { status: ObjectiveStatus },
): Objective => ({
  scope,
  id,
  revision,
  createdAt,
  updatedAt,
  ...(idempotencyKeyHash !== undefined && { idempotencyKeyHash }),
  ...(creationFingerprint !== undefined && { creationFingerprint }),
  owner,
  budgetAllocations: old.budgetAllocations,
  ...content,
})
