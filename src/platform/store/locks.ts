import type { Queryable } from '../../database/database.ts'

/** Waits until no other transaction holds this name, and holds it until the end of this one. SQLite has one writer anyway. */
export async function takeLock(tx: Queryable, name: string): Promise<void> {
  if (tx.dialect === 'postgres') await tx.run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name])
}
