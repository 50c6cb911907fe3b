import type { Queryable } from '../../database/database.ts'
import { invalid } from '../errors.ts'
import type { Recorded, Scope } from '../model/fields.ts'
import { readPosition } from './events.ts'
import { listRecords, type Family, type Key, type PageRequest, type RecordPage } from './records.ts'
import type { Conditions } from './sql.ts'

const REST = 0
const CHANGED = 1
/** The last to change at the end: what changes once more is still to come. */
const BY_CHANGE = { columns: ['recency', 'id'], descending: true }
/** No write takes longer from its time to its commit. */
const UNSETTLED_MS = 30_000

export interface Walk {
  scope: Scope
  where: () => Conditions
  columns: readonly string[]
  /** The column by which events tell of a record. */
  selector: 'objective_id' | 'project_id'
}

/**
 * A page of a list that is sorted by the last change, among others: who changes while the list is walked would move to its
 * front, unseen. A walk therefore goes through what has not changed since it began, then through what has, the first changed
 * first: it misses nothing, and shows again what changed after it was shown. A write may bear a time before the walk began and
 * be committed after that: its event stands behind the position of that moment. Needs an index by recency, and
 * kernel_events_by_objective or _by_project. Contract: kernel-1.md 1.7
 * @throws invalid for a place that a walk of another version gave out
 */
export async function walkRecords<T extends Recorded>(
  db: Queryable,
  family: Family<T>,
  { scope, where, columns, selector }: Walk,
  { limit, offset = 0, after, now }: PageRequest & { now: number },
): Promise<RecordPage<T>> {
  if (after && !isPlace(after, columns)) throw invalid('cursor is of another version of this list: begin the list anew')
  const [start = now, phase = REST, position = await readPosition(db, scope), ...place] = after ?? []
  const began = -Number(start)
  const settled = UNSETTLED_MS - Number(start)
  const told = `COALESCE((SELECT max(e.position) FROM kernel_events e WHERE e.scope = t.scope AND e.${selector} = t.id), 0)`
  const listChanged = async (most: number, behind: typeof place): Promise<RecordPage<T>> => {
    const isContinued = behind.length > 0 && { after: behind }
    const page = { limit: most, ...isContinued }
    const changed = where().and('t.recency < ?', settled).and(`(t.recency < ? OR ${told} > ?)`, began, position)
    const { items, next } = await listRecords(db, family, changed, BY_CHANGE, page)
    return { items, ...(next && { next: [start, CHANGED, position, ...next] }) }
  }
  if (phase === CHANGED) return listChanged(limit, place)
  const unchanged = after
    ? where().and('t.recency >= ?', began).and(`(t.recency >= ? OR ${told} <= ?)`, settled, position)
    : where()
  const rest = await listRecords(db, family, unchanged, { columns }, { limit, offset, ...(after && { after: place }) })
  if (rest.next) return { items: rest.items, next: [start, REST, position, ...rest.next] }
  if (!after) return rest
  const room = limit - rest.items.length
  const changed = await listChanged(Math.max(1, room), [])
  if (room > 0) return { ...changed, items: [...rest.items, ...changed.items] }
  return { items: rest.items, ...(changed.items.length > 0 && { next: [start, CHANGED, position] }) }
}

function isPlace([start, phase, position, ...place]: Key, columns: readonly string[]): boolean {
  if (typeof start !== 'number' || typeof position !== 'number') return false
  if (phase === REST) return place.length === columns.length
  return phase === CHANGED && (place.length === 0 || place.length === BY_CHANGE.columns.length)
}
