import type { Queryable } from '../../database/database.ts'
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

const readNeeds = (db: Queryable, scope: string, runId: string): Promise<Need[]> =>
  db.all<Need>('SELECT kind, name, amount FROM kernel_run_slots WHERE scope = $1 AND run_id = $2 ORDER BY kind, name', [
    scope,
    runId,
  ])

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

/** Takes all that a run needs, or gives false: what it took then is undone with the transaction. */
export async function takeSlots(tx: Queryable, scope: Scope, runId: string, limits: WorkerLimits): Promise<boolean> {
  const key = scopeKey(scope)
  for (const { kind, name, amount } of await readNeeds(tx, key, runId)) {
    const limit = kind === 'resource' ? 0 : limits[kind]
    const taken = await tx.run(
      `INSERT INTO kernel_slots (scope, kind, name, active, capacity, closed) VALUES ($1, $2, $3, $4, NULL, 0)
       ON CONFLICT (scope, kind, name) DO UPDATE SET active = kernel_slots.active + excluded.active
         WHERE kernel_slots.closed = 0
           AND (kernel_slots.capacity IS NULL OR kernel_slots.active + excluded.active <= kernel_slots.capacity)
           AND ($5 = 0 OR kernel_slots.active + excluded.active <= $5)`,
      [key, kind, name, amount, limit],
    )
    if (taken === 0) return false
  }
  return true
}

export async function freeSlots(tx: Queryable, scope: string, runId: string): Promise<void> {
  for (const { kind, name, amount } of await readNeeds(tx, scope, runId)) {
    await tx.run('UPDATE kernel_slots SET active = active - $4 WHERE scope = $1 AND kind = $2 AND name = $3', [
      scope,
      kind,
      name,
      amount,
    ])
  }
}

/** One thing that keeps a run from being claimed. */
export interface SlotBlock extends Need {
  active: number
  /** The smaller of the slot's and the worker's; absent where it is closed or unknown. */
  limit?: number
  closed: boolean
}

/** What keeps a run from being claimed now, of all that it needs. Contract: kernel-1.md 6.4. */
export async function readSlotBlocks(
  db: Queryable,
  scope: Scope,
  runId: string,
  { limits, knownAgents }: { limits: WorkerLimits; knownAgents: boolean },
): Promise<SlotBlock[]> {
  const rows = await db.all<Need & { active: number | null; capacity: number | null; closed: number | null }>(
    `SELECT n.kind, n.name, n.amount, s.active, s.capacity, s.closed
       FROM kernel_run_slots n LEFT JOIN kernel_slots s ON s.scope = n.scope AND s.kind = n.kind AND s.name = n.name
      WHERE n.scope = $1 AND n.run_id = $2 ORDER BY n.kind, n.name`,
    [scopeKey(scope), runId],
  )
  return rows.flatMap(({ kind, name, amount, active, capacity, closed }): SlotBlock[] => {
    const need = { kind, name, amount, active: active ?? 0 }
    if (closed === 1 || (knownAgents && kind === 'agent' && closed === null)) return [{ ...need, closed: true }]
    const own = kind === 'resource' || limits[kind] === 0 ? Infinity : limits[kind]
    const limit = Math.min(capacity ?? Infinity, own)
    return need.active + amount > limit ? [{ ...need, limit, closed: false }] : []
  })
}
