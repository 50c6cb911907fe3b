import type { Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import { categoryOf, type ActivityEvent, type NewEvent } from '../model/event.ts'
import { takeNumbers } from './counters.ts'
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

const ACTIVITY = 'activity'
/** In one statement, and so the most texts of that statement. */
const ROWS_AT_ONCE = 8

/**
 * Numbers and writes events of one scope. The last thing that a transaction does: the scope's next writer waits for its
 * end, so that positions stand in the order of commits.
 */
export async function appendEvents(tx: Queryable, events: readonly NewEvent[]): Promise<ActivityEvent[]> {
  const [first] = events
  if (!first) return []
  const scope = scopeKey(first.scope)
  const streams = events.map(streamOf)
  const amounts = new Map<string, number>()
  for (const stream of streams.toSorted()) amounts.set(`stream:${stream}`, (amounts.get(`stream:${stream}`) ?? 0) + 1)
  const numbers = await takeNumbers(tx, scope, amounts.set(ACTIVITY, events.length))
  const next = (name: string): number => {
    const number = numbers.get(name) ?? 0
    numbers.set(name, number + 1)
    return number
  }
  const rows = events.map((event, i): EventRow => {
    const stream = streams[i] ?? ''
    return { stream, position: next(ACTIVITY), event: completed(event, next(`stream:${stream}`)) }
  })
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    await insertEvents(tx, scope, rows.slice(from, from + ROWS_AT_ONCE))
  }
  for (const { position, event } of rows) await insertConversations(tx, scope, position, event)
  return rows.map(({ event }) => event)
}

interface EventRow {
  stream: string
  position: number
  event: ActivityEvent
}

const completed = (event: NewEvent, sequence: number): ActivityEvent => ({
  ...event,
  sequence,
  severity: event.severity ?? 'info',
  visibility: event.visibility ?? 'scope',
  conversationRefs: event.conversationRefs ?? [],
})

const COLUMNS = [
  'scope',
  'position',
  'stream',
  'sequence',
  'event_type',
  'category',
  'severity',
  'visibility',
  'run_id',
  'agent_id',
  'objective_id',
  'team_id',
  'project_id',
  'details',
  'body',
]

async function insertEvents(tx: Queryable, scope: string, rows: readonly EventRow[]): Promise<void> {
  const values = rows.map((_, row) => `(${COLUMNS.map((_name, i) => `$${row * COLUMNS.length + i + 1}`).join(', ')})`)
  await tx.run(
    `INSERT INTO kernel_events (${COLUMNS.join(', ')}) VALUES ${values.join(', ')}`,
    rows.flatMap(({ stream, position, event }) => {
      const { payload, usageDelta, ...body } = event
      return [
        scope,
        position,
        stream,
        event.sequence,
        event.eventType,
        categoryOf(event.eventType),
        event.severity,
        event.visibility,
        event.runId ?? null,
        event.agentId ?? null,
        event.objectiveId ?? null,
        event.teamId ?? null,
        event.projectId ?? null,
        payload || usageDelta ? JSON.stringify({ payload, usageDelta }) : null,
        JSON.stringify(body),
      ]
    }),
  )
}

async function insertConversations(
  tx: Queryable,
  scope: string,
  position: number,
  { conversationRefs }: ActivityEvent,
): Promise<void> {
  for (const conversationId of conversationRefs) {
    await tx.run(
      `INSERT INTO kernel_event_conversations (scope, conversation_id, position) VALUES ($1, $2, $3)
       ON CONFLICT (scope, conversation_id, position) DO NOTHING`,
      [scope, conversationId, position],
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
  const rows = await db.all<{ body: string; details: string | null; position: number; has_details: number }>(
    `SELECT e.body, e.position, CASE WHEN e.details IS NULL THEN 0 ELSE 1 END AS has_details,
            ${details ? 'e.details' : 'NULL AS details'}
       FROM kernel_events e ${conversationId === undefined ? '' : CONVERSATIONS}
      WHERE ${where.sql} ORDER BY ${position} ${order} LIMIT ${Math.trunc(limit) + 1}`,
    where.params,
  )
  return rows.map((row) => ({
    event: { ...JSON.parse(row.body), ...(row.details !== null && JSON.parse(row.details)) },
    position: row.position,
    detailAvailable: row.has_details === 1,
  }))
}
