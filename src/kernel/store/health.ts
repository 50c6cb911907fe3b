import { isAbsolute } from 'node:path'
import type { Database, Queryable } from '../../database/database.ts'
import { probeRoom } from '../../database/full-disk.ts'
import { scopeOf } from './scope-key.ts'
import type { Scope } from '../model/fields.ts'
import type { Worker } from './workers.ts'

/** Reads, and writes what it takes back, which a file is not touched by: there has to be room beside it. Rejects when one fails. */
export async function probeStore(database: Database): Promise<void> {
  const undone = new Error('undone')
  await database.get('SELECT value FROM kernel_meta WHERE name = $1', ['cursor_key'])
  await database
    .transaction(async (tx) => {
      await tx.run('INSERT INTO kernel_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', ['probe', ''])
      throw undone
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error
    })
  if (database.dialect === 'sqlite' && isAbsolute(database.location)) await probeRoom(database.location)
}

/** Scopes and kinds of work whose pools are all silent since then, and how many are not. The rows are few: one a pool. */
export async function readPools(
  db: Queryable,
  since: number,
): Promise<{ seen: number; silent: { scope: Scope; kind: Worker['kind'] }[] }> {
  const rows = await db.all<{ scope: string; kind: Worker['kind']; last: number }>(
    'SELECT scope, kind, max(last_seen_at) AS last FROM kernel_workers GROUP BY scope, kind ORDER BY scope, kind',
  )
  const silent = rows.filter(({ last }) => last <= since).map(({ scope, kind }) => ({ scope: scopeOf(scope), kind }))
  return { seen: rows.length - silent.length, silent }
}
