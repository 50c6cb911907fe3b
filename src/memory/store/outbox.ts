import { inNumbers, type Queryable } from '../../database/database.ts'

export type OutboxSeam = 'ledger' | 'graph' | 'vector' | 'content'

/** Something that must still reach a seam in another store. */
export interface OutboxRow {
  outbox_no: number
  seam: OutboxSeam
  op: string
  /** JSON. */
  payload: string
}

/** Behind all others of its seam. */
export async function insertOutbox(tx: Queryable, seam: OutboxSeam, op: string, payload: unknown): Promise<void> {
  await tx.run('INSERT INTO outbox (seam, op, payload) VALUES ($1, $2, $3)', [seam, op, JSON.stringify(payload)])
}

/** The oldest of a seam, in order. Relies on outbox_by_seam. */
export function findOutbox(db: Queryable, seam: OutboxSeam, limit: number): Promise<OutboxRow[]> {
  return db.all<OutboxRow>('SELECT * FROM outbox WHERE seam = $1 ORDER BY outbox_no LIMIT $2', [seam, limit])
}

/** By the primary key. */
export async function deleteOutbox(tx: Queryable, outboxNos: readonly number[]): Promise<void> {
  await tx.run(`DELETE FROM outbox WHERE outbox_no IN ${inNumbers(tx, '$1')}`, [JSON.stringify(outboxNos)])
}

/** Takes or renews a lease until a time (ms); false while another holder has it. */
export async function takeLease(
  tx: Queryable,
  name: string,
  holder: string,
  now: number,
  until: number,
): Promise<boolean> {
  const taken = await tx.run(
    `INSERT INTO lease (name, holder, until_at) VALUES ($1, $2, $4)
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
       WHERE lease.holder = excluded.holder OR lease.until_at <= $3`,
    [name, holder, now, until],
  )
  return taken > 0
}

/** Unless another holder has it. By the primary key. */
export async function releaseLease(tx: Queryable, name: string, holder: string): Promise<void> {
  await tx.run('DELETE FROM lease WHERE name = $1 AND holder = $2', [name, holder])
}

/** Of processes that are surely gone. */
export async function dropLeases(tx: Queryable): Promise<void> {
  await tx.run('DELETE FROM lease')
}
