import type { KernelContext } from './context.ts'
import { categoryOf, type ActivityEvent } from './model/event.ts'
import type { Scope } from './model/fields.ts'
import { listEvents, type EventFilter, type EventPageRequest } from './store/events.ts'

/** What happened, in the order of commits: a follower misses nothing. Contract: kernel-1.md 2 */

type Detail = 'payload' | 'usageDelta' | 'conversationRefs' | 'requestId' | 'correlationId' | 'causationId'

interface ActivityItem extends Omit<ActivityEvent, Detail>, Partial<Pick<ActivityEvent, Detail>> {
  category: string
  /** Whether there is more than an item without details shows. */
  detailAvailable: boolean
}

export interface ActivityPage {
  items: ActivityItem[]
  hasMore: boolean
  /** Where the next page begins, also behind one that is the last so far; absent where nothing was ever told. */
  next?: number
}

/** A page of what happened, with where to go on. */
export async function readActivity(
  { store }: KernelContext,
  scope: Scope,
  filter: EventFilter,
  request: EventPageRequest,
): Promise<ActivityPage> {
  const found = await listEvents(store.database, scope, filter, request)
  const shown = found.slice(0, request.limit)
  const start = request.after ?? (request.order === 'asc' ? 0 : undefined)
  const next = shown.at(-1)?.position ?? start
  return {
    items: shown.map(({ event, detailAvailable }) => ({
      ...(request.details ? event : withoutDetails(event)),
      category: categoryOf(event.eventType),
      detailAvailable,
    })),
    hasMore: found.length > shown.length,
    ...(next !== undefined && { next }),
  }
}

const withoutDetails = ({
  payload: _p,
  usageDelta: _u,
  conversationRefs: _r,
  requestId: _i,
  correlationId: _c,
  causationId: _a,
  ...event
}: ActivityEvent): Omit<ActivityEvent, Detail> => event
