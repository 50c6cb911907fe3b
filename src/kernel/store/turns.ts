import type { Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { KeptTurn, Turn, TurnStatus } from '../model/turn.ts'
import { listRecords, saveRecord, type Family, type RecordPage } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions } from './sql.ts'

/** Inserting a second unfinished turn of a run fails: kernel_turns_unfinished. */
export const turns: Family<Turn> = {
  table: 'kernel_turns',
  noun: 'agent turn',
  columns: ({ runId, sequence, status }) => ({ run_id: runId, sequence, status }),
}

/** The outcome and usage of a turn: T4. @throws conflict when another write came between */
export async function storeOutcome(tx: Queryable, { turn, outcome }: KeptTurn, now: number): Promise<Turn> {
  const saved = await saveRecord(tx, turns, turn, now)
  await tx.run('UPDATE kernel_turns SET outcome = $3 WHERE scope = $1 AND id = $2', [
    scopeKey(turn.scope),
    turn.id,
    outcome === undefined ? null : JSON.stringify(outcome),
  ])
  return saved
}

/** The turn of a run with this number, as kept: to go on with after a crash. The unique key of run and sequence. */
export async function findTurn(
  db: Queryable,
  scope: Scope,
  runId: string,
  sequence: number,
): Promise<KeptTurn | undefined> {
  const row = await db.get<{ body: string; outcome: string | null }>(
    'SELECT body, outcome FROM kernel_turns WHERE scope = $1 AND run_id = $2 AND sequence = $3',
    [scopeKey(scope), runId, sequence],
  )
  return row && { turn: JSON.parse(row.body), ...(row.outcome !== null && { outcome: JSON.parse(row.outcome) }) }
}

/** By sequence. The unique key of run and sequence. */
export const listTurns = (
  db: Queryable,
  scope: Scope,
  { runId, status, afterSequence = 0, limit }: TurnFilter,
): Promise<RecordPage<Turn>> =>
  listRecords(
    db,
    turns,
    new Conditions().and('t.scope = ?', scopeKey(scope)).and('t.run_id = ?', runId).among('t.status', status),
    { columns: ['sequence'] },
    { limit, after: [afterSequence] },
  )

export interface TurnFilter {
  runId: string
  status?: readonly TurnStatus[]
  afterSequence?: number
  limit: number
}
