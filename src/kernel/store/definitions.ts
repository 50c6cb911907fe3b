import type { Queryable } from '../../database/database.ts'
import type { Digested, Manifests } from '../model/definition.ts'
import type { Scope } from '../model/fields.ts'
import { scopeKey } from './scope-key.ts'

/** What agents and teams share a table of under their name. */
export type FamilyName = keyof Manifests
export type Definition<F extends FamilyName> = Manifests[F] & Digested

/** False when the version is there already: its digest tells whether it is the same. */
export async function insertDefinition<F extends FamilyName>(
  tx: Queryable,
  family: F,
  definition: Definition<F>,
): Promise<boolean> {
  const inserted = await tx.run(
    `INSERT INTO kernel_definitions (scope, family, id, version, digest, created_at, body)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (scope, family, id, version) DO NOTHING`,
    [
      scopeKey(definition.scope),
      family,
      definition.id,
      definition.version,
      definition.digest,
      Date.parse(definition.createdAt),
      JSON.stringify(definition),
    ],
  )
  return inserted === 1
}

export async function findDefinition<F extends FamilyName>(
  db: Queryable,
  family: F,
  scope: Scope,
  id: string,
  version: string,
): Promise<Definition<F> | undefined> {
  const row = await db.get<{ body: string }>(
    'SELECT body FROM kernel_definitions WHERE scope = $1 AND family = $2 AND id = $3 AND version = $4',
    [scopeKey(scope), family, id, version],
  )
  return row && JSON.parse(row.body)
}

/** Every version, the newest first. */
export async function listDefinitions<F extends FamilyName>(
  db: Queryable,
  family: F,
  scope: Scope,
  id: string,
): Promise<Definition<F>[]> {
  const rows = await db.all<{ body: string }>(
    `SELECT body FROM kernel_definitions WHERE scope = $1 AND family = $2 AND id = $3
      ORDER BY created_at DESC, version DESC`,
    [scopeKey(scope), family, id],
  )
  return rows.map((row) => JSON.parse(row.body))
}
