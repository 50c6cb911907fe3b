import { SealError, type Sealer } from '../../src/platform/sealing/sealer.ts'
import type { Place } from './support.ts'

const placeOf = (rowId: number) => ({ organizationId: 1, table: 'test_secrets', rowId, column: 'secret' })

/** Adds rows with secrets to a table that is registered as a migration would. */
export async function sealSecrets(place: Place, sealer: Sealer, count: number): Promise<void> {
  const database = place.open()
  await database.run(
    'CREATE TABLE IF NOT EXISTS test_secrets (id BIGINT PRIMARY KEY, organization_id BIGINT NOT NULL, secret TEXT)',
  )
  await database.run(
    `INSERT INTO platform_sealed_columns (table_name, column_name, row_column) VALUES ('test_secrets', 'secret', 'id')
     ON CONFLICT DO NOTHING`,
  )
  await database.transaction(async (tx) => {
    const last = await tx.get<{ id: number | null }>('SELECT max(id) AS id FROM test_secrets')
    for (let id = (last?.id ?? 0) + 1, left = count; left > 0; id++, left--) {
      const sealed = sealer.seal(`secret ${id}`, placeOf(id))
      await tx.run('INSERT INTO test_secrets (id, organization_id, secret) VALUES ($1, 1, $2)', [id, sealed])
    }
  })
  await database.close()
}

/** Every row with its key and what it opens to; undefined when it does not. */
export async function readSecrets(
  place: Place,
  sealer: Sealer,
): Promise<{ id: number; key: string | undefined; opened: string | undefined }[]> {
  const database = place.open()
  const rows = await database.all<{ id: number; secret: string }>('SELECT id, secret FROM test_secrets ORDER BY id')
  await database.close()
  return rows.map(({ id, secret }) => ({ id, key: secret.split('.')[1], opened: openOrNothing(sealer, id, secret) }))
}

function openOrNothing(sealer: Sealer, id: number, secret: string): string | undefined {
  try {
    return sealer.open(secret, placeOf(id))
  } catch (error) {
    if (!(error instanceof SealError)) throw error
    return undefined
  }
}
