import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import { errorText } from '../../base/errors.ts'
import type { Logger } from '../../platform/ports.ts'
import type { Sealer } from '../../platform/sealing/sealer.ts'
import type { UsageRecord } from '../model.ts'
import { CONTENTS, type ContentRow } from '../store/contents.ts'
import { toUsageRow } from '../store/usage-record.ts'
import type { UsageRow } from '../store/usage.ts'
import { digestOf, type Digest } from './digest.ts'
import type { Content } from './metering.ts'
import type { Waiting } from './queue.ts'

/** A record as it is written. */
export interface Entry {
  readonly row: UsageRow
  readonly content: ContentRow | undefined
}

/** Records that are written together. */
export interface Batch {
  readonly entries: readonly Entry[]
  /** What they come to, where that is known. */
  readonly digest?: Digest
  /** Whether this process made them: it holds what they were paid from. */
  readonly isOwn: boolean
  /** Whether some may be there already. */
  readonly isAgain: boolean
}

/** Of either side. */
export const CONTENT_BYTES = 256 * 1024

/** Makes records ready to be written: seals what they hold of prompts and answers, one in a turn of the event loop. */
export async function prepare(parts: SealParts, waiting: readonly Waiting[]): Promise<Entry[]> {
  const entries: Entry[] = []
  for (const { row, content } of waiting) {
    entries.push({ row, content: content && seal(parts, row, content) })
    if (content) await nextTurn()
  }
  return entries
}

interface SealParts {
  sealer: Sealer
  log: Logger
}

/** Undefined when there is no key to seal with: the record counts more than the content. */
function seal({ sealer, log }: SealParts, row: UsageRow, content: Content): ContentRow | undefined {
  const { id, organization_id: organizationId, started_at: at } = row
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
  row: known<UsageRow>().optional(),
  record: known<UsageRecord>().optional(),
  content: contentSchema.optional(),
})

function known<T extends { id: string }>() {
  return z.custom<T>((value) => typeof value === 'object' && value !== null && 'id' in value)
}

/** An entry as a line of the spill file. What is sealed stays sealed. */
export const toLine = (processId: string, entry: Entry): string => JSON.stringify({ process: processId, ...entry })

/** The entry of a line, which earlier versions wrote with a record in place of its row; undefined when it is none, or damaged. */
export function fromLine(line: string): { process: string; entry: Entry } | undefined {
  try {
    const { process, record, content, row = record && toUsageRow(record) } = lineSchema.parse(JSON.parse(line))
    if (!row) return undefined
    digestOf([row]) // what cannot be summed up would be tried for ever
    return { process, entry: { row, content } }
  } catch {
    return undefined
  }
}
