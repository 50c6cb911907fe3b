import type { Param, Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Scope } from '../model/fields.ts'
import { categoryOf, type ActivityEvent, type NewEvent } from '../model/event.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions } from './sql.ts'

/** Whose numbers an event bears. */
function streamOf({ runId, projectId, objectiveId, conversationRefs }: NewEvent): string {
  if (runId !== undefined) return `run:${runId}`
  if (projectId !== undefined) return `project:${projectId}`
  if (objectiveId !== undefined) return `objective:${objectiveId}`
  const [conversationId] = conversationRefs ?? []
  return conversationId === undefined ? 'scope' : `conversation:${conversationId}`
}

/** In one statement, and so the most texts of that statement. */
const ROWS_AT_ONCE = 8

/**
 * Numbers and writes events of one scope. The last thing that a transaction does: the scope's next writer waits for its
 * end, so that positions stand in the order of commits.
 */
export async function appendEvents(tx: Queryable, events: readonly NewEvent[]): Promise<ActivityEvent[]> {
  const written: ActivityEvent[] = []
  for (let from = 0; from < events.length; from += ROWS_AT_ONCE) {
    const rows = events.slice(from, from + ROWS_AT_ONCE).map(completed)
    const places = await insertEvents(tx, rows)
    for (const [i, row] of rows.entries()) {
      const { position, sequence } = returned(places[i])
      await insertConversations(tx, row, position)
      written.push({ ...row, sequence })
    }
  }
  return written
}

/** An event that has no number yet. */
type Unnumbered = Omit<ActivityEvent, 'sequence'>

const completed = (event: NewEvent): Unnumbered => ({
  ...event,
  severity: event.severity ?? 'info',
  visibility: event.visibility ?? 'scope',
  conversationRefs: event.conversationRefs ?? [],
})

const columnsOf = ({ payload, usageDelta, ...body }: Unnumbered): Record<string, string | null> => ({
  event_type: body.eventType,
  category: categoryOf(body.eventType),
  severity: body.severity,
  visibility: body.visibility,
  run_id: body.runId ?? null,
  agent_id: body.agentId ?? null,
  objective_id: body.objectiveId ?? null,
  team_id: body.teamId ?? null,
  project_id: body.projectId ?? null,
  details: payload || usageDelta ? JSON.stringify({ payload, usageDelta }) : null,
  body: JSON.stringify(body),
})

interface Place {
  position: number
  sequence: number
}

/**
 * Takes numbers and writes the rows with them, in one statement where the database can; gives their places in order. The
 * counters of streams are locked in the order of their names, and that of the scope's positions last.
 */
async function insertEvents(tx: Queryable, rows: readonly Unnumbered[]): Promise<Place[]> {
  const [first] = rows
  if (!first) return []
  const streams = rows.map(streamOf)
  const params: Param[] = [scopeKey(first.scope)]
  const put = (value: Param): string => `$${params.push(value)}`
  const counters = [...amountsOf(streams)].map(([name, amount]) => `($1, ${put(name)}, ${put(amount)})`)
  const take = `INSERT INTO kernel_counters (scope, name, value) VALUES ${counters.join(', ')}
    ON CONFLICT (scope, name) DO UPDATE SET value = kernel_counters.value + excluded.value`
  const isOne = tx.dialect === 'postgres'
  if (!isOne) await tx.run(take, params)
  const columns = rows.map(columnsOf)
  const names = Object.keys(columns[0] ?? {})
  const cast = (type: string, ...given: Param[]): string =>
    given.map((one) => `CAST(${put(one)} AS ${type})`).join(', ')
  const values = columns.map((row, i) => {
    const behind = streams.slice(i + 1)
    const inStream = behind.filter((stream) => stream === streams[i]).length
    return `(${cast('BIGINT', behind.length, inStream)}, ${cast('TEXT', streams[i] ?? '', ...Object.values(row))})`
  })
  const places = await tx.all<Place>(
    `WITH numbers AS (${isOne ? `${take} RETURNING name, value` : 'SELECT name, value FROM kernel_counters WHERE scope = $1'}),
       told (behind, behind_in_stream, stream, ${names.join(', ')}) AS (VALUES ${values.join(', ')})
     INSERT INTO kernel_events (scope, position, stream, sequence, ${names.join(', ')})
     SELECT $1, a.value - behind, told.stream, s.value - behind_in_stream, ${names.join(', ')}
       FROM told JOIN numbers a ON a.name = '${ACTIVITY}' JOIN numbers s ON s.name = 'stream:' || told.stream
     RETURNING position, sequence`,
    params,
  )
  return places.sort((a, b) => a.position - b.position)
}

const ACTIVITY = 'activity'

/** How many numbers of each counter. */
function amountsOf(streams: readonly string[]): Map<string, number> {
  const amounts = new Map<string, number>()
  for (const stream of streams.toSorted()) amounts.set(`stream:${stream}`, (amounts.get(`stream:${stream}`) ?? 0) + 1)
  return amounts.set(ACTIVITY, streams.length)
}

async function insertConversations(
  tx: Queryable,
  { scope, conversationRefs }: Unnumbered,
  position: number,
): Promise<void> {
  for (const conversationId of conversationRefs) {
    await tx.run(
      `INSERT INTO kernel_event_conversations (scope, conversation_id, position) VALUES ($1, $2, $3)
       ON CONFLICT (scope, conversation_id, position) DO NOTHING`,
      [scopeKey(scope), conversationId, position],
    )
  }
}

export interface EventFilter {
  runId?: string
  agentId?: string
  objectiveId?: string
  teamId?: string
  projectId?: string
  conversationId?: string
  eventType?: readonly string[]
  severity?: readonly string[]
  visibility?: readonly string[]
  category?: readonly string[]
}

export interface EventPageRequest {
  order: 'asc' | 'desc'
  /** The position that the page begins behind. */
  after?: number
  limit: number
  /** Payload and usage, which are not read otherwise. */
  details: boolean
}

export interface ListedEvent {
  event: ActivityEvent
  position: number
  detailAvailable: boolean
}

const CONVERSATIONS = 'JOIN kernel_event_conversations c ON c.scope = e.scope AND c.position = e.position'

/** One event more than `limit` where there are more. The key of kernel_events, or kernel_events_by_<selector>. */
export async function listEvents(
  db: Queryable,
  scope: Scope,
  filter: EventFilter,
  { order, after, limit, details }: EventPageRequest,
): Promise<ListedEvent[]> {
  const key = scopeKey(scope)
  const where = new Conditions()
    .and('e.scope = ?', key)
    .equal('e.run_id', filter.runId)
    .equal('e.agent_id', filter.agentId)
    .equal('e.objective_id', filter.objectiveId)
    .equal('e.team_id', filter.teamId)
    .equal('e.project_id', filter.projectId)
    .among('e.event_type', filter.eventType)
    .among('e.severity', filter.severity)
    .among('e.visibility', filter.visibility)
    .among('e.category', filter.category)
  const { conversationId } = filter
  if (conversationId !== undefined) where.and('c.scope = ?', key).and('c.conversation_id = ?', conversationId)
  const position = conversationId === undefined ? 'e.position' : 'c.position'
  if (after !== undefined) where.and(`${position} ${order === 'asc' ? '>' : '<'} ?`, after)
  const rows = await db.all<{
    body: string
    details: string | null
    position: number
    sequence: number
    has_details: number
  }>(
    `SELECT e.body, e.position, e.sequence, CASE WHEN e.details IS NULL THEN 0 ELSE 1 END AS has_details,
            ${details ? 'e.details' : 'NULL AS details'}
       FROM kernel_events e ${conversationId === undefined ? '' : CONVERSATIONS}
      WHERE ${where.sql} ORDER BY ${position} ${order} LIMIT ${Math.trunc(limit) + 1}`,
    where.params,
  )
  return rows.map((row) => ({
    event: { ...JSON.parse(row.body), sequence: row.sequence, ...(row.details !== null && JSON.parse(row.details)) },
    position: row.position,
    detailAvailable: row.has_details === 1,
  }))
}
