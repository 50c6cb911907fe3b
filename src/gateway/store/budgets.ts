import type { Queryable } from '../../database/database.ts'
import { takeLock } from '../../platform/store/locks.ts'
import type { Budget } from '../model.ts'
import { DAY, type Spender, sumSpent } from './aggregates.ts'

/** What of budgets all processes share. Amounts are nano-dollars; they travel as text, being larger than numbers are exact. */

/** The window of a budget that a row is of. */
export interface BudgetWindow {
  /** `organization:<id>`, `user:<id>` or `key:<id>`. */
  owner: string
  period: Budget['window']
  startsAt: number
  endsAt: number
}

/** What an owner spent on a day. */
export interface Spend {
  owner: string
  /** Its first moment, epoch ms. */
  day: number
  cost: bigint
}

/** Whoever spends, as rows name it. */
export const ownerOf = ({ type, id }: Spender): string => `${type}:${id}`

/** Whoever adds to spent money, and whoever begins to count it, come one after the other. */
export const lockTallies = (tx: Queryable): Promise<void> => takeLock(tx, 'gateway tallies')

/** Makes the row of a window where there is none: it begins with what the aggregates know. */
export async function openBudget(
  tx: Queryable,
  organizationId: number,
  spender: Spender,
  { owner, period, startsAt, endsAt }: BudgetWindow,
): Promise<void> {
  await lockTallies(tx)
  const known = 'SELECT 1 FROM gateway_budgets WHERE owner = $1 AND period = $2 AND starts_at = $3'
  if (await tx.get(known, [owner, period, startsAt])) return
  const spent = await sumSpent(tx, organizationId, spender, startsAt)
  await tx.run(
    `INSERT INTO gateway_budgets (owner, period, starts_at, ends_at, organization_id, spent, reserved)
     VALUES ($1, $2, $3, $4, $5, CAST($6 AS BIGINT), 0)`,
    [owner, period, startsAt, endsAt, organizationId, String(spent)],
  )
}

/** Sets a block aside for a process, if it fits below the limit. By the primary keys. */
export async function drawBlock(
  tx: Queryable,
  processId: string,
  { owner, period, startsAt }: BudgetWindow,
  block: bigint,
  limit: bigint,
): Promise<boolean> {
  const drawn = await tx.run(
    `UPDATE gateway_budgets SET reserved = reserved + CAST($4 AS BIGINT)
      WHERE owner = $1 AND period = $2 AND starts_at = $3
        AND spent + reserved + CAST($4 AS BIGINT) <= CAST($5 AS BIGINT)`,
    [owner, period, startsAt, String(block), String(limit)],
  )
  if (drawn === 0) return false
  await tx.run(
    `INSERT INTO gateway_budget_blocks (process_id, owner, period, starts_at, amount)
     VALUES ($1, $2, $3, $4, CAST($5 AS BIGINT))
     ON CONFLICT (process_id, owner, period, starts_at)
       DO UPDATE SET amount = gateway_budget_blocks.amount + excluded.amount`,
    [processId, owner, period, startsAt, String(block)],
  )
  return true
}

/** What the calls of a window have cost, as far as their records are written. By the primary key. */
export async function spentIn(db: Queryable, { owner, period, startsAt }: BudgetWindow): Promise<bigint> {
  const row = await db.get<{ spent: string }>(
    'SELECT CAST(spent AS TEXT) AS spent FROM gateway_budgets WHERE owner = $1 AND period = $2 AND starts_at = $3',
    [owner, period, startsAt],
  )
  return BigInt(row?.spent ?? 0)
}

/** Gives back of the block that a process holds, if it still does. By the primary keys. */
export async function returnBlock(
  tx: Queryable,
  processId: string,
  { owner, period, startsAt }: BudgetWindow,
  amount: bigint,
): Promise<void> {
  const returned = await tx.run(
    `UPDATE gateway_budgets SET reserved = reserved - CAST($5 AS BIGINT)
      WHERE owner = $2 AND period = $3 AND starts_at = $4
        AND EXISTS (SELECT 1 FROM gateway_budget_blocks b WHERE b.process_id = $1 AND b.owner = $2 AND b.period = $3
                     AND b.starts_at = $4 AND b.amount >= CAST($5 AS BIGINT))`,
    [processId, owner, period, startsAt, String(amount)],
  )
  if (returned === 0) return
  const left = await tx.run(
    `UPDATE gateway_budget_blocks SET amount = amount - CAST($5 AS BIGINT)
      WHERE process_id = $1 AND owner = $2 AND period = $3 AND starts_at = $4 AND amount >= CAST($5 AS BIGINT)`,
    [processId, owner, period, startsAt, String(amount)],
  )
  if (left === 0) throw new Error(`the block of ${owner} was taken back meanwhile`)
}

/** Gives back all that processes hold. */
export async function returnBlocksOf(tx: Queryable, processId: string): Promise<void> {
  await lockTallies(tx)
  const blocks = await tx.all<{ owner: string; period: string; starts_at: number; amount: string }>(
    `DELETE FROM gateway_budget_blocks WHERE process_id = $1
     RETURNING owner, period, starts_at, CAST(amount AS TEXT) AS amount`,
    [processId],
  )
  for (const { owner, period, starts_at, amount } of blocks) {
    await tx.run(
      `UPDATE gateway_budgets SET reserved = reserved - CAST($4 AS BIGINT)
        WHERE owner = $1 AND period = $2 AND starts_at = $3`,
      [owner, period, starts_at, amount],
    )
  }
}

/** Adds what was spent to every window it falls into. By the primary key; the caller holds the lock of tallies. */
export async function addSpends(tx: Queryable, spends: readonly Spend[]): Promise<void> {
  const source = tx.dialect === 'sqlite' ? 'json_each($1)' : 'json_array_elements($1::json)'
  await tx.run(
    `WITH spends AS (SELECT value ->> 0 AS owner, CAST(value ->> 1 AS BIGINT) AS day, CAST(value ->> 2 AS BIGINT) AS cost
        FROM ${source})
     UPDATE gateway_budgets SET spent = spent + (SELECT COALESCE(sum(cost), 0) FROM spends s
         WHERE s.owner = gateway_budgets.owner AND s.day >= starts_at AND s.day < ends_at)
      WHERE owner IN (SELECT owner FROM spends) AND ends_at > $2`,
    [
      JSON.stringify(spends.map(({ owner, day, cost }) => [owner, day, String(cost)])),
      Math.min(...spends.map(({ day }) => day)),
    ],
  )
}

interface BudgetRow {
  owner: string
  period: Budget['window']
  starts_at: number
  reserved: bigint
}

/** The windows of an organization that a time falls into. By gateway_budgets_by_organization. */
export async function listBudgets(db: Queryable, organizationId: number, now: number): Promise<BudgetRow[]> {
  const rows = await db.all<Omit<BudgetRow, 'reserved'> & { reserved_text: string }>(
    `SELECT owner, period, starts_at, CAST(reserved AS TEXT) AS reserved_text FROM gateway_budgets
      WHERE organization_id = $1 AND ends_at > $2 AND starts_at <= $2 ORDER BY owner`,
    [organizationId, now],
  )
  return rows.map(({ reserved_text, ...row }) => ({ ...row, reserved: BigInt(reserved_text) }))
}

/** Deletes windows that ended before a time. By gateway_budgets_by_end. */
export async function deleteBudgetsBefore(db: Queryable, before: number): Promise<void> {
  await db.run('DELETE FROM gateway_budgets WHERE ends_at < $1 AND reserved = 0', [before])
}

/** A late record still finds its window so long. */
export const BUDGETS_KEPT_MS = 30 * DAY
