import { inList, type Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { scopeKey } from './scope-key.ts'

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

/** Sets what a slot can hold (null for no bound) and whether it takes more runs at all; what is active stays. */
export async function setSlot(
  tx: Queryable,
  scope: Scope,
  { kind, name, capacity, closed }: { kind: SlotKind; name: string; capacity: number | null; closed: boolean },
): Promise<void> {
  await tx.run(
    `INSERT INTO kernel_slots (scope, kind, name, active, capacity, closed) VALUES ($1, $2, $3, 0, $4, $5)
     ON CONFLICT (scope, kind, name) DO UPDATE SET capacity = excluded.capacity, closed = excluded.closed`,
    [scopeKey(scope), kind, name, capacity, Number(closed)],
  )
}

/** Takes all that a run needs, or gives false: what it took then is undone with the transaction. The keys of both tables. */
export async function takeSlots(tx: Queryable, run: Run, limits: WorkerLimits): Promise<boolean> {
  const limit = `CASE excluded.kind WHEN 'agent' THEN $3 WHEN 'owner' THEN $4 WHEN 'objective' THEN $5
                   WHEN 'concurrency_key' THEN $6 ELSE 0 END`
  const taken = await tx.run(
    `INSERT INTO kernel_slots (scope, kind, name, active, capacity, closed)
     SELECT scope, kind, name, amount, NULL, 0 FROM kernel_run_slots WHERE scope = $1 AND run_id = $2 ORDER BY kind, name
     ON CONFLICT (scope, kind, name) DO UPDATE SET active = kernel_slots.active + excluded.active
       WHERE kernel_slots.closed = 0
         AND (kernel_slots.capacity IS NULL OR kernel_slots.active + excluded.active <= kernel_slots.capacity)
         AND (${limit} = 0 OR kernel_slots.active + excluded.active <= ${limit})`,
    [scopeKey(run.scope), run.id, limits.agent, limits.owner, limits.objective, limits.concurrency_key],
  )
  return taken === slotsOf(run).length
}

/** The key of kernel_run_slots, in whose order the slots are locked, as everywhere. */
export const freeSlots = (tx: Queryable, scope: string, runId: string): Promise<number> =>
  tx.run(
    `UPDATE kernel_slots SET active = kernel_slots.active - n.amount
       FROM (SELECT kind, name, amount FROM kernel_run_slots WHERE scope = $1 AND run_id = $2 ORDER BY kind, name) n
      WHERE kernel_slots.scope = $1 AND kernel_slots.kind = n.kind AND kernel_slots.name = n.name`,
    [scope, runId],
  )

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
