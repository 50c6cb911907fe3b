import type { Queryable } from '../../database/database.ts'
import type { SealedPlace } from '../../platform/sealing/sealer.ts'

/** A sealed secret of a credential: one of its own, or the value of a custom header. */
export interface SecretRow {
  credential_id: number
  name: string
  value: string
}

/** The name under which the value of a custom header is kept. */
export const headerSecret = (name: string): string => `header:${name.toLowerCase()}`

/** Where a secret is sealed: it opens for no other credential, and under no other name. */
export const placeOfSecret = (organizationId: number, credentialId: number, name: string): SealedPlace => ({
  organizationId,
  table: 'gateway_credential_secrets',
  rowId: `${credentialId}/${name}`,
  column: 'value',
})

/** Uses gateway_credential_secrets_by_organization. */
export const readSecrets = (db: Queryable, organizationId: number): Promise<SecretRow[]> =>
  db.all<SecretRow>('SELECT credential_id, name, value FROM gateway_credential_secrets WHERE organization_id = $1', [
    organizationId,
  ])

/** Of one credential. By gateway_credential_secrets_by_organization. */
export const readSecretsOf = (db: Queryable, organizationId: number, credentialId: number): Promise<SecretRow[]> =>
  db.all<SecretRow>(
    `SELECT credential_id, name, value FROM gateway_credential_secrets WHERE organization_id = $1 AND credential_id = $2`,
    [organizationId, credentialId],
  )

/** Replaces the one of this name. */
export async function saveSecret(tx: Queryable, organizationId: number, secret: SecretRow): Promise<void> {
  const { credential_id: credentialId, name, value } = secret
  await tx.run(
    `INSERT INTO gateway_credential_secrets (id, organization_id, credential_id, name, value)
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE SET value = excluded.value`,
    [`${credentialId}/${name}`, organizationId, credentialId, name, value],
  )
}

/** By the primary key. */
export async function deleteSecret(tx: Queryable, credentialId: number, name: string): Promise<void> {
  await tx.run('DELETE FROM gateway_credential_secrets WHERE id = $1', [`${credentialId}/${name}`])
}
