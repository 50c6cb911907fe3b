import type { Queryable } from '../../database/database.ts'
import type { LedgerRow } from './ledger.ts'

/** Entries of all workspaces by id, newest first from before an id (exclusive). Relies on the primary key. */
export const listLatest = (ledger: Queryable, before: string, limit: number): Promise<LedgerRow[]> =>
  ledger.all<LedgerRow>('SELECT * FROM ledger WHERE ledger_id < $1 ORDER BY ledger_id DESC LIMIT $2', [before, limit])
