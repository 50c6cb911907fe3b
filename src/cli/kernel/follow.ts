import { setTimeout } from 'node:timers/promises'
import { KernelApiError } from '../../client/index.ts'
import type { ActivityItem, ActivityQuery, Run } from '../../client/kernel/kernel-types.ts'
import type { KernelClient } from '../../client/kernel-client.ts'

const PAUSE_MS = 500
const PAGE = 100
/** How often a server that has gone is asked again: it may be restarting. */
const MOST_FAILURES = 30

/** Who follows: until the signal aborts; `tell` hears that the server has gone. */
export interface Follower {
  signal: AbortSignal
  tell: (remark: string) => void
}

/** Waits a moment; false once nobody waits any more. */
async function pause(signal: AbortSignal): Promise<boolean> {
  await setTimeout(PAUSE_MS, undefined, { signal }).catch(() => undefined)
  return !signal.aborted
}

/** Asks until the server is there. @throws KernelApiError when it stays away, or refuses */
export async function outlast<T>({ signal, tell }: Follower, ask: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await ask()
    } catch (error) {
      const isAway = error instanceof KernelApiError && (error.status === 0 || error.status === 503)
      if (!isAway || failures === MOST_FAILURES) throw error
      if (failures === 1) tell('the server does not answer; asking again …')
      if (!(await pause(signal))) throw error
    }
  }
}

/** The newest items, the oldest of them first, and then what follows, until the signal aborts. */
export async function* followActivity(
  client: KernelClient,
  query: ActivityQuery,
  first: number,
  follower: Follower,
): AsyncGenerator<ActivityItem> {
  let shown = (await client.activity({ ...query, order: 'desc', limit: first })).items
  let last: string | undefined = shown[0]?.id
  for (;;) {
    yield* shown.toReversed()
    if (!(await pause(follower.signal))) return
    shown = await outlast(follower, () => newerThan(client, query, last, follower.signal))
    last = shown[0]?.id ?? last
  }
}

/** The newest first, back to the item that was the last. */
async function newerThan(
  client: KernelClient,
  query: ActivityQuery,
  last: string | undefined,
  signal: AbortSignal,
): Promise<ActivityItem[]> {
  const found: ActivityItem[] = []
  let cursor: string | undefined
  for (;;) {
    const at = cursor === undefined ? {} : { cursor }
    const page = await client.activity({ ...query, order: 'desc', limit: PAGE, ...at }, { signal })
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
  follower: Follower,
): AsyncGenerator<ActivityItem, Run, undefined> {
  const { signal } = follower
  let run = await client.runs.get(runId)
  let cursor: string | undefined
  for (;;) {
    for (let more = true; more;) {
      const at = { order: 'asc', limit: PAGE, includeDetails: true, ...(cursor !== undefined && { cursor }) } as const
      const page = await outlast(follower, () => client.activity({ runId, ...at }, { signal }))
      yield* page.items
      cursor = page.nextCursor
      more = page.hasMore
    }
    if (isEnded(run) || !(await pause(signal))) return run
    // Read before its events: what is told after that belongs to it.
    run = await outlast(follower, () => client.runs.get(runId, { signal }))
  }
}
