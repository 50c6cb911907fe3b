import type { Queryable } from '../../database/database.ts'

/**
 * Gives out the next numbers under each name, the first of which it tells; nobody else gets any until this transaction ends.
 * The names are locked in the order they stand in.
 */
export async function takeNumbers(
  tx: Queryable,
  scope: string,
  amounts: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  const values = [...amounts].map((_, i) => `($1, $${2 * i + 2}, $${2 * i + 3})`)
  const rows = await tx.all<{ name: string; value: number }>(
    `INSERT INTO kernel_counters (scope, name, value) VALUES ${values.join(', ')}
     ON CONFLICT (scope, name) DO UPDATE SET value = kernel_counters.value + excluded.value RETURNING name, value`,
    [scope, ...[...amounts].flat()],
  )
  return new Map(rows.map(({ name, value }) => [name, value - (amounts.get(name) ?? 0) + 1]))
}
