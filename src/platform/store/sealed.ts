import type { Queryable } from '../../database/database.ts'

/** A column whose values are sealed, as the migration that made it registered it. */
export interface SealedColumn {
  table_name: string
  column_name: string
  /** The unique column that a value is bound to. */
  row_column: string
}

export interface SealedValue {
  organization_id: number
  row_id: string | number
  value: string
}

export const listSealedColumns = (db: Queryable): Promise<SealedColumn[]> =>
  db.all<SealedColumn>(
    'SELECT table_name, column_name, row_column FROM platform_sealed_columns ORDER BY table_name, column_name',
  )

/** Values after a row, in ascending order of the rows; from the first one on without `after`. */
export const readSealedValues = (
  db: Queryable,
  { table_name, column_name, row_column }: SealedColumn,
  after: string | number | undefined,
  limit: number,
): Promise<SealedValue[]> =>
  db.all<SealedValue>(
    `SELECT organization_id, ${row_column} AS row_id, ${column_name} AS value FROM ${table_name}
      WHERE ${column_name} IS NOT NULL ${after === undefined ? '' : `AND ${row_column} > $2`}
      ORDER BY ${row_column} LIMIT $1`,
    after === undefined ? [limit] : [limit, after],
  )

/** Replaces a value that is still the one it was. */
export const replaceSealedValue = (
  tx: Queryable,
  { table_name, column_name, row_column }: SealedColumn,
  { row_id, value }: SealedValue,
  sealed: string,
): Promise<number> =>
  tx.run(`UPDATE ${table_name} SET ${column_name} = $3 WHERE ${row_column} = $1 AND ${column_name} = $2`, [
    row_id,
    value,
    sealed,
  ])
