import type { Queryable } from '../../database/database.ts'
import type { LastError } from '../model.ts'

/** What is found out about a credential; what is not named stays, null clears. */
export interface HealthFacts {
  rejectedUntil?: number | null
  lastError?: LastError | null
  checkedAt?: number
}

/** Nothing is saved when the credential is no longer there. @param version where what was found holds for that one alone */
export async function saveHealth(
  tx: Queryable,
  organizationId: number,
  id: number,
  facts: HealthFacts,
  version?: number,
): Promise<void> {
  const { rejectedUntil, lastError, checkedAt } = facts
  // Without it a row that another transaction deletes is still read, and breaks the reference.
  const lock = tx.dialect === 'postgres' ? 'FOR KEY SHARE' : ''
  await tx.run(
    `INSERT INTO gateway_credential_health (credential_id, organization_id, rejected_until, last_error, checked_at)
     SELECT id, organization_id, $3, $4, $5 FROM gateway_credentials
     WHERE organization_id = $1 AND id = $2 AND version = COALESCE($8, version) ${lock}
     ON CONFLICT (credential_id) DO UPDATE SET
       rejected_until = CASE WHEN $6 = 1 THEN excluded.rejected_until ELSE gateway_credential_health.rejected_until END,
       last_error = CASE WHEN $7 = 1 THEN excluded.last_error ELSE gateway_credential_health.last_error END,
       checked_at = COALESCE(excluded.checked_at, gateway_credential_health.checked_at)`,
    [
      organizationId,
      id,
      rejectedUntil ?? null,
      lastError ? JSON.stringify(lastError) : null,
      checkedAt ?? null,
      Number(rejectedUntil !== undefined),
      Number(lastError !== undefined),
      version ?? null,
    ],
  )
}
