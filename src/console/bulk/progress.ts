import { CodedError } from '../../base/errors.ts'
import { toRefusal } from '../errors.ts'
import { event } from '../stream.ts'

export type Outcome = 'succeeded' | 'skipped'

/** Ends a run before its end: the message is for the client. */
export class Stop extends Error {}

/**
 * Takes one record after the other and tells of each at once. A record that is refused counts as failed; a `Stop` or a
 * fault ends the run. Contract: memory.md 14, Bulk.
 */
export async function* progress<T>(
  records: readonly T[],
  signal: AbortSignal,
  take: (record: T) => Promise<Outcome>,
): AsyncGenerator<string> {
  const counts = { succeeded: 0, failed: 0, skipped: 0 }
  try {
    for (const [index, record] of records.entries()) {
      if (signal.aborted) return
      const problem = await attempt(async () => counts[await take(record)]++)
      if (problem !== undefined) counts.failed++
      yield json({
        type: 'progress',
        done: index + 1,
        total: records.length,
        failed: counts.failed,
        ...(problem !== undefined && { error: problem }),
      })
    }
    yield json({ type: 'complete', ...counts })
  } catch (error) {
    // Who left is told nothing; a server that ends cuts off what is under way.
    if (signal.aborted) return
    yield json({ type: 'error', message: error instanceof Stop ? error.message : toRefusal(error).message })
  }
}

/** Why it was refused; undefined when it went well. @throws what is no refusal. */
async function attempt(work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (error instanceof CodedError) return error.message
    throw error
  }
}

const json = (value: object): string => event(JSON.stringify(value))
