import { canonicalJson } from '../base/canonical-json.ts'
import { sha256 } from '../base/hash.ts'

/** Who did what, as it is shown and hashed. Contract: gateway.md 2.7. */
export interface AuditRecord {
  id: number
  organization_id: number
  seq: number
  prev_hash: string
  hash: string
  at: string
  actor: { type: 'user' | 'key' | 'system'; id?: number }
  action: string
  target: { type: string; id: string; name?: string }
  /** Before and after; secrets are `***`. */
  changes?: Record<string, readonly [unknown, unknown]>
  request_id?: string
  ip?: string
  user_agent?: string
  /** How often it happened: more than once only by the system. */
  count: number
}

/** The `prev_hash` of an organization's first record. */
export const GENESIS_HASH = '0'.repeat(64)

/** SHA-256 over the canonical JSON of all but the hash itself. Contract: memory.md 9.4, without redaction. */
export const auditHash = ({ hash: _, ...rest }: AuditRecord): string => sha256(canonicalJson(rest))

/** What is wrong with a record that should stand in this place behind that hash; undefined when nothing is. */
export function auditProblem(record: AuditRecord, seq: number, prevHash: string): string | undefined {
  if (record.seq !== seq) return `record ${seq} is missing`
  if (record.prev_hash !== prevHash) return 'prev_hash is not the hash of the record before'
  return record.hash === auditHash(record) ? undefined : 'a field was changed after the record was written'
}
