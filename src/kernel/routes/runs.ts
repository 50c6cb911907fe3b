import * as z from 'zod'
import type { ActivityEvent } from '../model/event.ts'
import { id } from '../model/fields.ts'
import { createRun, runCommand, RUN_KINDS, RUN_SOURCES, RUN_STATES } from '../model/run.ts'
import { readAdmission } from '../runs/admission.ts'
import { auditRun } from '../runs/audit.ts'
import { commandRun } from '../runs/command.ts'
import { createRun as create } from '../runs/create.ts'
import { shownRun } from '../runs/shown.ts'
import { readRecord } from '../store/records.ts'
import { listRuns, runs } from '../store/runs.ts'
import { page, read, write } from './handlers.ts'
import { integer, ownerFilter, ownerOf, several } from './query.ts'
import type { Asked, Handlers } from './route.ts'

const FILTER = {
  ...ownerFilter,
  kind: several(RUN_KINDS).exactOptional(),
  objectiveId: id.exactOptional(),
  projectId: id.exactOptional(),
  parentRunId: id.exactOptional(),
  rootRunId: id.exactOptional(),
  assignedAgentId: id.exactOptional(),
  status: several(RUN_STATES).exactOptional(),
  source: several(RUN_SOURCES).exactOptional(),
  q: z
    .string()
    .refine((value) => Buffer.byteLength(value) <= 1000, 'must have 1000 bytes at most')
    .exactOptional(),
  order: z.enum(['scheduler', 'created_desc']).default('scheduler'),
}

const limit = integer(0, 1_000_000).exactOptional()

const ADMISSION = {
  kind: z.enum(RUN_KINDS).exactOptional(),
  assignedAgentId: id.exactOptional(),
  runId: id.exactOptional(),
  maxActiveForAgent: limit,
  maxActiveForOwner: limit,
  maxActiveForObjective: limit,
  maxActiveForConcurrencyKey: limit,
}

const replay = async ({ context, scope }: Asked<unknown>, runId: string): Promise<object> => ({
  run: shownRun(await readRecord(context.store.database, runs, scope, runId)),
})

const eventOf = (events: readonly ActivityEvent[], eventId: string | undefined): { event?: ActivityEvent } => {
  const event = events.find((written) => written.id === eventId)
  return event ? { event } : {}
}

/** Contract: kernel-1.md 6 */
export const runRoutes: Handlers = {
  'POST /agent-runs': write(
    createRun,
    { replay, isShared: true, before: async ({ context }) => context.newId() },
    async (
      { change, body: { scope: _s, actor: _a, visibility: _v, idempotencyKey: _k, ...fields }, creation },
      newId,
    ) => {
      const run = await create(change, { ...fields, ...creation, ...(newId !== undefined && { id: newId }) })
      return {
        recordId: run.id,
        status: 201,
        answer: (events) => ({
          run: shownRun(run),
          event: events.find(({ runId, eventType }) => runId === run.id && eventType === 'run.created'),
        }),
      }
    },
  ),
  'GET /agent-runs': page(FILTER, async ({ context, scope, query }, request) => {
    const { order, ownerType: _t, ownerId: _i, ...filter } = query
    const { items, ...rest } = await listRuns(
      context.store.database,
      scope,
      { ...filter, ...ownerOf(query) },
      order,
      request,
    )
    return { items: items.map(shownRun), ...rest }
  }),
  'GET /agent-runs/admission': read(ADMISSION, ({ context, scope, query }) => readAdmission(context, scope, query)),
  'GET /agent-runs/{id}': read({}, async ({ context, scope, params: { id: runId = '' } }) =>
    shownRun(await readRecord(context.store.database, runs, scope, runId)),
  ),
  'GET /agent-runs/{id}/runbook-audit': read({}, ({ context, scope, params: { id: runId = '' } }) =>
    auditRun(context.store.database, scope, runId),
  ),
  'POST /agent-runs/{id}/commands': write(
    runCommand,
    { replay },
    async ({ change, params: { id: runId = '' }, body }) => {
      const { run, event } = await commandRun(change, runId, body)
      return {
        recordId: run.id,
        isReplay: event === undefined,
        answer: (events) => ({ run: shownRun(run), ...eventOf(events, event?.id) }),
      }
    },
  ),
}
