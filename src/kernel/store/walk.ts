import type { Queryable } from '../../database/database.ts'
import type { Recorded } from '../model/fields.ts'
import { listRecords, type Family, type PageRequest, type RecordPage } from './records.ts'
import type { Conditions } from './sql.ts'

const REST = 0
const CHANGED = 1
/** The last to change at the end: what changes once more is still to come. */
const BY_CHANGE = { columns: ['recency', 'id'], descending: true }

/**
 * A page of a list that is sorted by the last change, among others: who changes while the list is walked would move to its
 * front, unseen. A walk therefore goes through what has not changed since it began, then through what has, the first changed
 * first: it misses nothing, and shows again what changed after it was shown. Needs an index by recency. Contract: kernel-1.md 1.7
 */
export async function walkRecords<T extends Recorded>(
  db: Queryable,
  family: Family<T>,
  where: () => Conditions,
  columns: readonly string[],
  { limit, offset = 0, after, now }: PageRequest & { now: number },
): Promise<RecordPage<T>> {
  const [start = now, phase = REST, ...place] = after ?? []
  const since = -Number(start)
  const listChanged = async (most: number, behind: typeof place): Promise<RecordPage<T>> => {
    const isContinued = behind.length > 0 && { after: behind }
    const page = { limit: most, ...isContinued }
    const { items, next } = await listRecords(db, family, where().and('t.recency < ?', since), BY_CHANGE, page)
    return { items, ...(next && { next: [start, CHANGED, ...next] }) }
  }
  if (phase === CHANGED) return listChanged(limit, place)
  const unchanged = after ? where().and('t.recency >= ?', since) : where()
  const rest = await listRecords(db, family, unchanged, { columns }, { limit, offset, ...(after && { after: place }) })
  if (rest.next) return { items: rest.items, next: [start, REST, ...rest.next] }
  if (!after) return rest
  const room = limit - rest.items.length
  const changed = await listChanged(Math.max(1, room), [])
  if (room > 0) return { ...changed, items: [...rest.items, ...changed.items] }
  return { items: rest.items, ...(changed.items.length > 0 && { next: [start, CHANGED] }) }
}
