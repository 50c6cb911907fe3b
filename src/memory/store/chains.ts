import type { Queryable } from '../../database/database.ts'

/** Where a workspace stands: its last ledger entry, and the last change to what recall sees. */
export interface Chain {
  seq: number
  headHash: string
  changeSeq: number
}

interface ChainRow {
  seq: number
  head_hash: string
  change_seq: number
}

const toChain = (row: ChainRow): Chain => ({ seq: row.seq, headHash: row.head_hash, changeSeq: row.change_seq })

/** The `prev_hash` of a workspace's first entry. */
export const GENESIS_HASH = '0'.repeat(64)

/** Locks the workspace's row until the transaction ends: its mutations happen one after the other. */
export async function lockChain(tx: Queryable, workspaceId: string): Promise<Chain | undefined> {
  const lock = tx.dialect === 'postgres' ? 'FOR UPDATE' : ''
  const row = await tx.get<ChainRow>(`SELECT seq, head_hash, change_seq FROM chain WHERE workspace_id = $1 ${lock}`, [
    workspaceId,
  ])
  return row && toChain(row)
}

/** Makes creations of workspaces wait for each other; SQLite has one writer already. */
export async function lockCreations(tx: Queryable): Promise<void> {
  if (tx.dialect === 'postgres') await tx.run('SELECT pg_advisory_xact_lock(7169390)')
}

/** Without a lock. By the primary key. */
export async function findChain(db: Queryable, workspaceId: string): Promise<Chain | undefined> {
  const row = await db.get<ChainRow>('SELECT seq, head_hash, change_seq FROM chain WHERE workspace_id = $1', [
    workspaceId,
  ])
  return row && toChain(row)
}

/** The empty chain of a new workspace. */
export async function insertChain(tx: Queryable, workspaceId: string): Promise<Chain> {
  await tx.run('INSERT INTO chain (workspace_id, seq, head_hash, change_seq) VALUES ($1, 0, $2, 0)', [
    workspaceId,
    GENESIS_HASH,
  ])
  return { seq: 0, headHash: GENESIS_HASH, changeSeq: 0 }
}

/** Under the lock of `lockChain`. By the primary key. */
export async function saveChain(tx: Queryable, workspaceId: string, chain: Chain): Promise<void> {
  await tx.run('UPDATE chain SET seq = $2, head_hash = $3, change_seq = $4 WHERE workspace_id = $1', [
    workspaceId,
    chain.seq,
    chain.headHash,
    chain.changeSeq,
  ])
}

/** Every chain, those of deleted workspaces included, by workspace id; without those that an import hides. */
export async function listChains(db: Queryable): Promise<(Chain & { workspaceId: string })[]> {
  const rows = await db.all<ChainRow & { workspace_id: string }>(
    'SELECT workspace_id, seq, head_hash, change_seq FROM chain WHERE seq > 0 ORDER BY workspace_id',
  )
  return rows.map((row) => ({ workspaceId: row.workspace_id, ...toChain(row) }))
}

/** Workspaces with more changes than that, most first: a cheap measure of their size. */
export async function listBusiest(db: Queryable, changes: number, limit: number): Promise<string[]> {
  const rows = await db.all<{ workspace_id: string }>(
    'SELECT workspace_id FROM chain WHERE change_seq > $1 ORDER BY change_seq DESC LIMIT $2',
    [changes, limit],
  )
  return rows.map((row) => row.workspace_id)
}
