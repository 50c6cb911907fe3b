import { csvLine } from '../../base/csv.ts'
import { timeOfUuid } from '../../base/ids.ts'
import type { Database } from '../../database/database.ts'
import type { Caller } from '../../platform/caller.ts'
import { invalidRequest, notFound } from '../../platform/errors.ts'
import type { Sealer } from '../../platform/sealing/sealer.ts'
import type { Actor } from '../access.ts'
import type { Audit } from '../audit.ts'
import type { UsageRecord } from '../model.ts'
import { CONTENTS, findContent } from '../store/contents.ts'
import { toUsageRecord, USAGE_FIELDS } from '../store/usage-record.ts'
import { findUsage, listUsage, type UsageFilter, type UsagePlace } from '../store/usage.ts'
import { ownerOnly } from './analytics.ts'

const PAGE = 500

export interface UsageParts {
  database: Database
  sealer: Sealer
  audit: Pick<Audit, 'append'>
}

export interface ContentAnswer {
  request: string
  response: string
  truncated: boolean
}

/** Usage records, as people read them: members their own, admins all. Contract: gateway.md 3.5. */
export class Usage {
  readonly #parts: UsageParts

  constructor(parts: UsageParts) {
    this.#parts = parts
  }

  /**
   * The newest first, behind a record, which may be gone since; as many as asked at most.
   * @throws invalid_request 400 when no record can have that id
   */
  async list(caller: Caller, filter: UsageFilter, afterId: string | undefined, limit: number): Promise<UsageRecord[]> {
    const after = afterId === undefined ? undefined : placeOf(afterId)
    const own = { ...filter, ...ownerOnly(caller) }
    const rows = await listUsage(this.#parts.database, caller.user.organization_id, own, after, limit)
    return rows.map(toUsageRecord)
  }

  /** @throws not_found 404 */
  async get(caller: Caller, id: string): Promise<UsageRecord> {
    const row = await findUsage(this.#parts.database, caller.user.organization_id, id)
    const { ownerId } = ownerOnly(caller)
    if (!row || (ownerId !== undefined && row.user_id !== ownerId)) throw notFound('usage', id)
    return toUsageRecord(row)
  }

  /** All that match, the newest first, a page at a time. */
  async *export(caller: Caller, filter: UsageFilter, format: 'jsonl' | 'csv'): AsyncGenerator<string> {
    const { organization_id: organizationId } = caller.user
    const own = { ...filter, ...ownerOnly(caller) }
    if (format === 'csv') yield csvLine(USAGE_FIELDS)
    for (let after: UsagePlace | undefined; ;) {
      const rows = await listUsage(this.#parts.database, organizationId, own, after, PAGE)
      if (rows.length > 0)
        yield rows
          .map(toUsageRecord)
          .map(format === 'csv' ? toCsv : toJsonLine)
          .join('')
      if (rows.length < PAGE) return
      after = rows.at(-1)
    }
  }

  /** Prompt and answer of a call, for an admin; the audit knows of it before they are given. @throws not_found 404 */
  async content(actor: Actor, id: string): Promise<ContentAnswer> {
    const { database, sealer, audit } = this.#parts
    const { organization_id: organizationId } = actor.user
    const row = await findContent(database, organizationId, id)
    if (!row) throw notFound('content', id)
    const open = (column: 'request' | 'response'): string =>
      sealer.open(row[column], { organizationId, table: CONTENTS, rowId: id, column })
    const answer = { request: open('request'), response: open('response'), truncated: row.truncated === 1 }
    await database.transaction((tx) => audit.append(tx, actor, 'content.read', { type: 'usage', id }))
    return answer
  }
}

/** The id of a record tells when its call began. */
function placeOf(id: string): UsagePlace {
  const startedAt = timeOfUuid(id)
  if (startedAt === undefined) throw invalidRequest('after_id must be the id of a usage record', 'after_id')
  return { id, started_at: startedAt }
}

const toJsonLine = (record: UsageRecord): string => `${JSON.stringify(record)}\n`

const toCsv = (record: UsageRecord): string =>
  csvLine(
    USAGE_FIELDS.map((name) => {
      const value = record[name] ?? ''
      return typeof value === 'object' ? JSON.stringify(value) : String(value)
    }),
  )
