import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import { errorText } from '../../base/errors.ts'
import type { Logger } from '../../platform/ports.ts'
import type { Sealer } from '../../platform/sealing/sealer.ts'
import type { UsageRecord } from '../model.ts'
import { CONTENTS, type ContentRow } from '../store/contents.ts'
import { toUsageRow } from '../store/usage-record.ts'
import type { UsageRow } from '../store/usage.ts'
import type { Content } from './metering.ts'
import type { Waiting } from './queue.ts'

/** A record as it is written. */
export interface Entry {
  readonly record: UsageRecord
  readonly row: UsageRow
  readonly content: ContentRow | undefined
}

/** Records that are written together. */
export interface Batch {
  readonly entries: readonly Entry[]
  /** Whether this process made them: it holds what they were paid from. */
  readonly isOwn: boolean
  /** Whether some may be there already. */
  readonly isAgain: boolean
}

/** So many are made ready in one turn of the event loop. */
const SLICE = 100
/** Of either side. */
export const CONTENT_BYTES = 256 * 1024

/** Makes records ready to be written, in small slices. */
export async function prepare(parts: SealParts, waiting: readonly Waiting[]): Promise<Entry[]> {
  const entries: Entry[] = []
  for (const { record, content } of waiting) {
    const row = toUsageRow(record)
    entries.push({ record, row, content: content && seal(parts, record, row.started_at, content) })
    if (content || entries.length % SLICE === 0) await nextTurn()
  }
  return entries
}

interface SealParts {
  sealer: Sealer
  log: Logger
}

/** Undefined when there is no key to seal with: the record counts more than the content. */
function seal({ sealer, log }: SealParts, record: UsageRecord, at: number, content: Content): ContentRow | undefined {
  const { id, organization_id: organizationId } = record
  const { request, response, truncated = isCut(request) || isCut(response) } = content
  const sealed = (column: string, text: Buffer): string =>
    sealer.seal(text.toString('utf8', 0, CONTENT_BYTES), { organizationId, table: CONTENTS, rowId: id, column })
  try {
    return {
      id,
      organization_id: organizationId,
      created_at: at,
      request: sealed('request', request),
      response: sealed('response', response),
      truncated: truncated ? 1 : 0,
    }
  } catch (error) {
    log.error({ reason: errorText(error), id }, 'prompt and answer of a call cannot be sealed: they are not kept')
    return undefined
  }
}

const isCut = ({ length }: Buffer): boolean => length >= CONTENT_BYTES

const contentSchema = z.strictObject({
  id: z.string(),
  organization_id: z.int(),
  created_at: z.int(),
  request: z.string(),
  response: z.string(),
  truncated: z.int(),
})
/** What was written by this program is only looked at as far as telling it from half a line needs. */
const lineSchema = z.object({
  process: z.string(),
  record: z.custom<UsageRecord>((value) => typeof value === 'object' && value !== null && 'id' in value),
  content: contentSchema.optional(),
})

/** An entry as a line of the spill file. What is sealed stays sealed. */
export const toLine = (processId: string, { record, content }: Entry): string =>
  JSON.stringify({ process: processId, record, content })

/** The entry of a line; undefined when it is none. */
export function fromLine(line: string): { process: string; entry: Entry } | undefined {
  try {
    const { process, record, content } = lineSchema.parse(JSON.parse(line))
    return { process, entry: { record, row: toUsageRow(record), content } }
  } catch {
    return undefined
  }
}
