import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'

/** Gives out the next `amount` numbers, the first of which it tells; nobody else gets any until this transaction ends. */
export async function takeNumbers(tx: Queryable, scope: string, name: string, amount: number): Promise<number> {
  const row = await tx.get<{ value: number }>(
    `INSERT INTO kernel_counters (scope, name, value) VALUES ($1, $2, $3)
     ON CONFLICT (scope, name) DO UPDATE SET value = kernel_counters.value + excluded.value RETURNING value`,
    [scope, name, amount],
  )
  return returned(row).value - amount + 1
}
