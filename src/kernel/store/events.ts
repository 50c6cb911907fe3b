import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Scope } from '../model/fields.ts'
import { categoryOf, type ActivityEvent, type NewEvent } from '../model/event.ts'
import { recordsOf, textOf, toParam, wellFormed } from './rows.ts'
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

/**
 * Numbers and writes events of one scope. The last thing that a transaction does: the scope's next writer waits for its
 * end, so that positions stand in the order of commits. What could go wrong before the statements are sent does so at once.
 */
export function appendEvents(tx: Queryable, events: readonly NewEvent[]): Promise<ActivityEvent[]> {
  const rows = events.map(completed)
  return insertEvents(tx, rows).then(async (places) => {
    const written: ActivityEvent[] = []
    for (const [i, row] of rows.entries()) {
      const { position, sequence } = returned(places[i])
      await insertConversations(tx, row, position)
      written.push({ ...row, sequence })
    }
    return written
  })
}

/** An event that has no number yet. */
type Unnumbered = Omit<ActivityEvent, 'sequence'>

const completed = (event: NewEvent): Unnumbered => ({
  ...event,
  severity: event.severity ?? 'info',
  visibility: event.visibility ?? 'scope',
  conversationRefs: event.conversationRefs ?? [],
})

const COLUMNS = [
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
] as const

const columnsOf = ({
  payload,
  usageDelta,
  ...body
}: Unnumbered): Partial<Record<(typeof COLUMNS)[number], unknown>> => ({
  event_type: body.eventType,
  category: categoryOf(body.eventType),
  severity: body.severity,
  visibility: body.visibility,
  run_id: body.runId,
  agent_id: wellFormed(body.agentId),
  objective_id: body.objectiveId,
  team_id: wellFormed(body.teamId),
  project_id: wellFormed(body.projectId),
  ...((payload ?? usageDelta) && { details: { payload, usageDelta } }),
  body,
})

interface Place {
  position: number
  sequence: number
}

/** What an event becomes: its numbers tell how many of its transaction are behind it, in all and in its stream. */
type EventRow = Place & { stream: string } & ReturnType<typeof columnsOf>

const NAMES = ['position', 'stream', 'sequence', ...COLUMNS] as const

const TAKE =
  'ON CONFLICT (scope, name) DO UPDATE SET value = kernel_counters.value + excluded.value RETURNING name, value'

/**
 * Takes numbers and writes the rows with them; gives their places in order. The counters of streams are locked in the order of
 * their names, and that of the scope's positions last.
 */
function insertEvents(tx: Queryable, events: readonly Unnumbered[]): Promise<Place[]> {
  const [first] = events
  if (!first) return Promise.resolve([])
  const streams = events.map(streamOf)
  const rows = events.map((event, i): EventRow => {
    const behind = streams.slice(i + 1)
    const [stream = ''] = streams.slice(i)
    const sequence = behind.filter((other) => other === stream).length
    return { position: behind.length, stream, sequence, ...columnsOf(event) }
  })
  const insert = tx.dialect === 'sqlite' ? insertEach : insertAll
  return insert(tx, scopeKey(first.scope), amountsOf(streams), rows)
}

type Insert = (
  tx: Queryable,
  scope: string,
  amounts: ReadonlyMap<string, number>,
  rows: readonly EventRow[],
) => Promise<Place[]>

/** As one statement. */
const insertAll: Insert = (tx, scope, amounts, rows) => {
  const counters = [...amounts].map(([name, value]) => ({ name, value }))
  const last = (name: string): string => `(SELECT value FROM numbers WHERE name = ${name})`
  const inserted = tx.all<Place>(
    `WITH numbers AS (INSERT INTO kernel_counters (scope, name, value)
       SELECT $1, c.name, c.value FROM ${recordsOf('$2', 'kernel_counters')} c ${TAKE})
     INSERT INTO kernel_events (scope, ${NAMES.join(', ')})
     SELECT $1, ${last(`'${ACTIVITY}'`)} - v.position, v.stream, ${last(`'stream:' || v.stream`)} - v.sequence, ${COLUMNS.map((name) => `v.${name}`).join(', ')}
       FROM ${recordsOf('$3', 'kernel_events')} v
     RETURNING position, sequence`,
    [scope, textOf(counters), textOf(rows)],
  )
  return inserted.then((places) => places.sort((a, b) => a.position - b.position))
}

/** SQLite has no way to the server to save, and takes single values faster. */
const insertEach: Insert = async (tx, scope, amounts, rows) => {
  const last = new Map<string, number>()
  for (const [name, amount] of amounts) {
    const sql = `INSERT INTO kernel_counters (scope, name, value) VALUES ($1, $2, $3) ${TAKE}`
    last.set(name, returned(await tx.get<{ value: number }>(sql, [scope, name, amount])).value)
  }
  const places: Place[] = []
  for (const row of rows) {
    const position = returned(last.get(ACTIVITY)) - row.position
    const sequence = returned(last.get(`stream:${row.stream}`)) - row.sequence
    const values = NAMES.map((name) => toParam({ ...row, position, sequence }[name]))
    await tx.run(
      `INSERT INTO kernel_events (scope, ${NAMES.join(', ')}) VALUES ($1, ${NAMES.map((_, i) => `$${i + 2}`).join(', ')})`,
      [scope, ...values],
    )
    places.push({ position, sequence })
  }
  return places
}

const ACTIVITY = 'activity'

/** How many numbers of each counter. */
function amountsOf(streams: readonly string[]): Map<string, number> {
  const amounts = new Map<string, number>()
  for (const stream of streams.toSorted()) amounts.set(`stream:${stream}`, (amounts.get(`stream:${stream}`) ?? 0) + 1)
  return amounts.set(ACTIVITY, streams.length)
}

/** How many events a scope has by now. The key of kernel_counters. */
export async function readPosition(db: Queryable, scope: Scope): Promise<number> {
  const sql = 'SELECT value FROM kernel_counters WHERE scope = $1 AND name = $2'
  return (await db.get<{ value: number }>(sql, [scopeKey(scope), ACTIVITY]))?.value ?? 0
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
