import type { Queryable } from '../../database/database.ts'
import { conflict } from '../errors.ts'
import type { Scope } from '../model/fields.ts'
import { scopeKey } from './scope-key.ts'

/** An idempotency key as sent to one route. Contract: kernel-1.md 1.5. */
export interface KeyUse {
  scope: Scope
  /** Method and path with its ids. */
  route: string
  keyHash: string
  fingerprint: string
}

/** What was done under this key; undefined when nothing was. @throws conflict when it was sent with other content */
export async function findKey(db: Queryable, use: KeyUse): Promise<string | undefined> {
  const row = await db.get<{ fingerprint: string; record_id: string }>(
    'SELECT fingerprint, record_id FROM kernel_keys WHERE scope = $1 AND route = $2 AND key_hash = $3',
    [scopeKey(use.scope), use.route, use.keyHash],
  )
  if (row && row.fingerprint !== use.fingerprint) throw conflict('this idempotency key was used with other content')
  return row?.record_id
}

/**
 * Marks the key as used for a record, in the transaction of its effect. Of two at once one waits for the other's end.
 * Gives the record of the other where that was first: then this transaction must do nothing.
 * @throws conflict when the other's content differs
 */
export async function useKey(tx: Queryable, use: KeyUse, recordId: string, now: number): Promise<string | undefined> {
  const inserted = await tx.run(
    `INSERT INTO kernel_keys (scope, route, key_hash, fingerprint, record_id, created_at) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (scope, route, key_hash) DO NOTHING`,
    [scopeKey(use.scope), use.route, use.keyHash, use.fingerprint, recordId, now],
  )
  return inserted === 1 ? undefined : findKey(tx, use)
}
