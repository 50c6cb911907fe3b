import { toTimestamp } from '../../base/clock.ts'
import type { Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { StoredOutcome } from '../model/outcome.ts'
import type { Run } from '../model/run.ts'
import type { KeptTurn, Turn, TurnStatus } from '../model/turn.ts'
import { listRecords, type Family, type RecordPage } from './records.ts'
import { writeRow } from './rows.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions } from './sql.ts'

/** Inserting a second unfinished turn of a run fails: kernel_turns_unfinished. */
export const turns: Family<Turn> = {
  table: 'kernel_turns',
  noun: 'agent turn',
  columns: ({ runId, sequence, status }) => ({ run_id: runId, sequence, status }),
}

const COLUMNS = {
  id: 'TEXT',
  revision: 'BIGINT',
  run_id: 'TEXT',
  sequence: 'BIGINT',
  status: 'TEXT',
  outcome: 'TEXT',
  body: 'TEXT',
  fencing_token: 'BIGINT',
} as const

const rowOf = (turn: Turn, fencingToken: number, outcome?: StoredOutcome): Parameters<typeof writeRow>[1] => ({
  scope: scopeKey(turn.scope),
  table: 'kernel_turns',
  columns: COLUMNS,
  row: {
    id: turn.id,
    revision: turn.revision,
    run_id: turn.runId,
    sequence: turn.sequence,
    status: turn.status,
    ...(outcome && { outcome }),
    body: turn,
    fencing_token: fencingToken,
  },
})

/** While its holder has the run: one that ran out is good until another has it. The key of kernel_run_leases. */
const isHeld = (v: Readonly<Record<string, string>>): string => `EXISTS (SELECT 1 FROM kernel_run_leases l
  WHERE l.scope = $1 AND l.run_id = ${v['run_id']} AND l.fencing_token = ${v['fencing_token']} AND l.owner IS NOT NULL)`

/** Begins a turn: T3. False where the lease is lost, or the turn is there already. The unique keys of kernel_turns. */
export const insertTurn = (tx: Queryable, turn: Turn, fencingToken: number): Promise<boolean> =>
  writeRow(
    tx,
    rowOf(turn, fencingToken),
    (v, from) => `INSERT INTO kernel_turns (scope, id, revision, run_id, sequence, status, body)
     SELECT $1, ${v['id']}, ${v['revision']}, ${v['run_id']}, ${v['sequence']}, ${v['status']}, ${v['body']} ${from}
      WHERE ${isHeld(v)} ON CONFLICT DO NOTHING`,
  )

/** The outcome and usage of a turn: T4. Undefined where the lease is lost, or another went on with the turn. */
export async function storeOutcome(
  tx: Queryable,
  { turn, outcome }: KeptTurn,
  { fencingToken, now }: { fencingToken: number; now: number },
): Promise<Turn | undefined> {
  const next: Turn = { ...turn, revision: turn.revision + 1, updatedAt: toTimestamp(now) }
  const stored = await writeRow(
    tx,
    rowOf(next, fencingToken, outcome),
    (v, from) => `UPDATE kernel_turns
        SET revision = ${v['revision']}, status = ${v['status']}, outcome = ${v['outcome']}, body = ${v['body']} ${from}
      WHERE kernel_turns.scope = $1 AND kernel_turns.id = ${v['id']} AND kernel_turns.run_id = ${v['run_id']}
        AND kernel_turns.revision = ${v['revision']} - 1 AND ${isHeld(v)}`,
  )
  return stored ? next : undefined
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

/** Unfinished turns of canceled runs, with them. kernel_turns_unfinished, the key of kernel_runs. */
export async function findOrphans(db: Queryable, limit: number): Promise<{ turn: Turn; run: Run }[]> {
  const rows = await db.all<{ turn: string; run: string }>(
    `SELECT t.body AS turn, r.body AS run FROM kernel_turns t JOIN kernel_runs r ON r.scope = t.scope AND r.id = t.run_id
      WHERE t.status = 'running' AND r.status = 'canceled' ORDER BY t.scope, t.run_id LIMIT $1`,
    [limit],
  )
  return rows.map(({ turn, run }) => ({ turn: JSON.parse(turn), run: JSON.parse(run) }))
}

/** By sequence. The unique key of run and sequence. */
export const listTurns = (
  db: Queryable,
  scope: Scope,
  { runId, status, afterSequence = 0, offset = 0, limit }: TurnFilter,
): Promise<RecordPage<Turn>> =>
  listRecords(
    db,
    turns,
    new Conditions().and('t.scope = ?', scopeKey(scope)).and('t.run_id = ?', runId).among('t.status', status),
    { columns: ['sequence'] },
    { limit, offset, after: [afterSequence] },
  )

export interface TurnFilter {
  runId: string
  status?: readonly TurnStatus[]
  afterSequence?: number
  offset?: number
  limit: number
}
