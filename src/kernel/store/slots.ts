import { inList, type Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { scopeKey } from './scope-key.ts'
import { amongIds, forUpdate } from './sql.ts'

export const SLOT_KINDS = ['agent', 'owner', 'objective', 'concurrency_key', 'resource'] as const
export type SlotKind = (typeof SLOT_KINDS)[number]

/** What a run takes up while it is worked on. */
export interface Need {
  kind: SlotKind
  name: string
  amount: number
}

/** Bounds that a worker sets itself; 0 is none. */
export type WorkerLimits = Record<Exclude<SlotKind, 'resource'>, number>

/** The deployment that executes a run: the one assigned, else the agent that owns it. */
export const executorOf = ({ assignedAgentId, owner }: Run): string | undefined =>
  assignedAgentId ?? (owner.type === 'agent' ? owner.id : undefined)

export const resourceSlot = (objectiveId: string, resource: string): string => `${objectiveId}/${resource}`

/** In the order in which they are locked. */
export function slotsOf(run: Run): Need[] {
  const one = (kind: SlotKind, name: string | undefined): Need[] =>
    name === undefined ? [] : [{ kind, name, amount: 1 }]
  return [
    ...one('agent', executorOf(run)),
    ...one('concurrency_key', run.concurrencyKey),
    ...one('objective', run.objectiveId),
    ...one('owner', `${run.owner.type}:${run.owner.id}`),
    ...Object.entries(run.objectiveId === undefined ? {} : (run.resourceRequirements ?? {}))
      .map(([resource, amount]): Need => ({
        kind: 'resource',
        name: resourceSlot(run.objectiveId ?? '', resource),
        amount,
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  ]
}

/** What a slot can hold, null for no bound; an agent's, how many queued runs it takes; and whether it takes more at all. */
export interface Slot {
  kind: SlotKind
  name: string
  capacity: number | null
  maxQueued?: number
  closed: boolean
}

/** What is active stays. */
export async function setSlot(
  tx: Queryable,
  scope: Scope,
  { kind, name, capacity, maxQueued, closed }: Slot,
): Promise<void> {
  await tx.run(
    `INSERT INTO kernel_slots (scope, kind, name, active, capacity, max_queued, closed) VALUES ($1, $2, $3, 0, $4, $5, $6)
     ON CONFLICT (scope, kind, name) DO UPDATE
       SET capacity = excluded.capacity, max_queued = excluded.max_queued, closed = excluded.closed`,
    [scopeKey(scope), kind, name, capacity, maxQueued ?? null, Number(closed)],
  )
}

/**
 * How many queued runs an agent takes, where it has more, with the one that this transaction wrote; undefined while that one fits.
 * Of those that add one to a bounded queue at once, each waits for the one before. The key of kernel_slots, kernel_runs_by_status.
 */
export async function findFullQueue(tx: Queryable, scope: Scope, agent: string): Promise<number | undefined> {
  const slot = `SELECT max_queued FROM kernel_slots WHERE scope = $1 AND kind = 'agent' AND name = $2 AND max_queued > 0`
  const params = [scopeKey(scope), agent]
  if (!(await tx.get(slot, params))) return undefined
  const { max_queued: limit = 0 } = (await tx.get<{ max_queued: number }>(slot + forUpdate(tx), params)) ?? {}
  const queued = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM kernel_runs WHERE scope = $1 AND status = 'queued'
        AND (agent_id = $2 OR (agent_id IS NULL AND owner_type = 'agent' AND owner_id = $2)) LIMIT $3) queue`,
    [...params, limit + 1],
  )
  return limit > 0 && queued && queued.count > limit ? limit : undefined
}

/** What these runs take up together, in the order in which slots are locked. The key of kernel_run_slots. */
const needsOf = (db: Queryable, amount: string): string =>
  `SELECT scope, kind, name, CAST(${amount} AS BIGINT), 0 FROM kernel_run_slots
    WHERE scope = $1 AND ${amongIds(db, 'run_id', '$2')} GROUP BY scope, kind, name`

const CHANGE = 'ON CONFLICT (scope, kind, name) DO UPDATE SET active = kernel_slots.active + excluded.active'

/** Takes all that runs need, or gives false: what it took then is undone with the transaction. The keys of both tables. */
export async function takeSlots(
  tx: Queryable,
  scope: Scope,
  runs: readonly Run[],
  limits: WorkerLimits,
): Promise<boolean> {
  const limitOf = (kind: string): string =>
    `CASE ${kind} WHEN 'agent' THEN $3 WHEN 'owner' THEN $4 WHEN 'objective' THEN $5 WHEN 'concurrency_key' THEN $6 ELSE 0 END`
  const taken = await tx.run(
    `INSERT INTO kernel_slots (scope, kind, name, active, closed)
     ${needsOf(tx, 'SUM(amount)')} HAVING ${limitOf('kind')} = 0 OR SUM(amount) <= ${limitOf('kind')} ORDER BY kind, name
     ${CHANGE} WHERE kernel_slots.closed = 0
         AND (kernel_slots.capacity IS NULL OR kernel_slots.active + excluded.active <= kernel_slots.capacity)
         AND (${limitOf('excluded.kind')} = 0 OR kernel_slots.active + excluded.active <= ${limitOf('excluded.kind')})`,
    [scopeKey(scope), idsOf(runs), limits.agent, limits.owner, limits.objective, limits.concurrency_key],
  )
  return taken === new Set(runs.flatMap(slotsOf).map(({ kind, name }) => `${kind} ${name}`)).size
}

/** Frees what runs took up. Slots are locked in the order of their key, as everywhere. The keys of both tables. */
export async function freeSlots(tx: Queryable, scope: Scope, runs: readonly { id: string }[]): Promise<void> {
  if (runs.length === 0) return
  const free = `INSERT INTO kernel_slots (scope, kind, name, active, closed) ${needsOf(tx, '-SUM(amount)')} ORDER BY kind, name ${CHANGE}`
  await tx.run(free, [scopeKey(scope), idsOf(runs)])
}

/** As one parameter. */
export const idsOf = (runs: readonly { id: string }[]): string => JSON.stringify(runs.map(({ id }) => id))

export interface AgentSlot {
  name: string
  active: number
  capacity: number
}

/** Of these agents, those that are deployed and take runs. The key of kernel_slots. */
export const readAgentSlots = (db: Queryable, scope: Scope, agents: readonly string[]): Promise<AgentSlot[]> =>
  db.all<AgentSlot>(
    `SELECT name, active, capacity FROM kernel_slots
      WHERE scope = $1 AND kind = 'agent' AND closed = 0 AND capacity IS NOT NULL AND name IN ${inList(db, '$2')}`,
    [scopeKey(scope), JSON.stringify(agents)],
  )
