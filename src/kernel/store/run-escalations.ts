import type { Queryable } from '../../database/database.ts'
import type { Party, Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { scopeOf } from './scope-key.ts'

/** Runs nobody works on that take longer than the rule of their agent says, the oldest first. kernel_runs_to_escalate. */
export async function findOverdueEscalations(
  db: Queryable,
  now: number,
  limit: number,
): Promise<{ scope: Scope; id: string; recipient: Party }[]> {
  const rows = await db.all<{ scope: string; id: string; body: string }>(
    'SELECT scope, id, body FROM kernel_runs WHERE escalate_at <= $1 ORDER BY escalate_at LIMIT $2',
    [now, limit],
  )
  return rows.flatMap(({ scope, id, body }) => {
    const { escalation }: Run = JSON.parse(body)
    return escalation ? [{ scope: scopeOf(scope), id, recipient: escalation.recipient }] : []
  })
}
