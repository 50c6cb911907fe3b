import { setTimeout } from 'node:timers/promises'
import type { ActivityItem, ActivityQuery, Run } from '../../client/kernel/kernel-types.ts'
import type { KernelClient } from '../../client/kernel-client.ts'

const PAUSE_MS = 500
const PAGE = 100

/** Waits a moment; false once nobody waits any more. */
async function pause(signal: AbortSignal): Promise<boolean> {
  await setTimeout(PAUSE_MS, undefined, { signal }).catch(() => undefined)
  return !signal.aborted
}

/** The newest items, the oldest of them first, and then what follows, until the signal aborts. */
export async function* followActivity(
  client: KernelClient,
  query: ActivityQuery,
  first: number,
  signal: AbortSignal,
): AsyncGenerator<ActivityItem> {
  let shown = (await client.activity({ ...query, order: 'desc', limit: first })).items
  let last: string | undefined = shown[0]?.id
  for (;;) {
    yield* shown.toReversed()
    if (!(await pause(signal))) return
    shown = await newerThan(client, query, last)
    last = shown[0]?.id ?? last
  }
}

/** The newest first, back to the item that was the last. */
async function newerThan(
  client: KernelClient,
  query: ActivityQuery,
  last: string | undefined,
): Promise<ActivityItem[]> {
  const found: ActivityItem[] = []
  let cursor: string | undefined
  for (;;) {
    const at = cursor === undefined ? {} : { cursor }
    const page = await client.activity({ ...query, order: 'desc', limit: PAGE, ...at })
    const known = page.items.findIndex(({ id }) => id === last)
    found.push(...(known < 0 ? page.items : page.items.slice(0, known)))
    if (known >= 0 || !page.hasMore) return found
    cursor = page.nextCursor
  }
}

const ENDS = new Set<Run['status']>(['completed', 'failed', 'canceled'])
export const isEnded = ({ status }: Run): boolean => ENDS.has(status)

/** All that happened to a run from its beginning and what follows, until its end or the signal aborts; gives the run then. */
export async function* followRun(
  client: KernelClient,
  runId: string,
  signal: AbortSignal,
): AsyncGenerator<ActivityItem, Run, undefined> {
  let cursor: string | undefined
  for (;;) {
    // Read first: what is told after that belongs to it.
    const run = await client.runs.get(runId)
    for (let more = true; more;) {
      const at = cursor === undefined ? {} : { cursor }
      const page = await client.activity({ runId, order: 'asc', limit: PAGE, includeDetails: true, ...at })
      yield* page.items
      cursor = page.nextCursor
      more = page.hasMore
    }
    if (isEnded(run) || !(await pause(signal))) return run
  }
}
