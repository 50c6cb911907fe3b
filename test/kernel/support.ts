import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { toTimestamp } from '../../src/base/clock.ts'
import { createUuidSource } from '../../src/base/ids.ts'
import { claimRuns, type Claimed, type ClaimRequest } from '../../src/kernel/claim.ts'
import type { KernelContext } from '../../src/kernel/context.ts'
import type { ActionCall, Approval } from '../../src/kernel/model/action.ts'
import type { NewEvent } from '../../src/kernel/model/event.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import type { Objective } from '../../src/kernel/model/objective.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import type { Turn } from '../../src/kernel/model/turn.ts'
import { newMemoryStore, newPostgresStore, newSqliteStore, type KernelStore } from '../../src/kernel/store/store.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'

/** A clock that stands until it is moved. */
export function standingClock(): Clock & { advance(ms: number): void } {
  let at = Date.UTC(2026, 2, 2, 8)
  return { now: () => at, advance: (ms) => void (at += ms) }
}

export interface StorePlace {
  driver: 'memory' | 'sqlite' | 'postgres'
  clock: ReturnType<typeof standingClock>
  /** Opens the same store again, as another process does; one in memory is always a new one. */
  open(): Promise<KernelStore>
  remove(): Promise<void>
}

export async function createStorePlace(driver: StorePlace['driver']): Promise<StorePlace> {
  const clock = standingClock()
  if (driver === 'memory') return { driver, clock, open: () => newMemoryStore(clock), remove: async () => {} }
  if (driver === 'sqlite') {
    const directory = mkdtempSync(join(tmpdir(), 'mem-test-kernel-'))
    const path = join(directory, 'kernel.db')
    return {
      driver,
      clock,
      open: () => newSqliteStore(path, { clock }),
      remove: async () => rmSync(directory, { recursive: true, force: true }),
    }
  }
  const database = await createPostgresDatabase()
  return { driver, clock, open: () => newPostgresStore(database.url, { clock }), remove: () => database.drop() }
}

/** What records are made with. */
export interface Fixture {
  place: { clock: ReturnType<typeof standingClock> }
  newId: () => string
  advance(ms: number): void
  /** A scope of this call's own. */
  scope(): Scope
  /** RFC 3339, so many ms from now. */
  at(ms?: number): string
}

export interface OpenStore extends Fixture {
  store: KernelStore
  place: StorePlace
}

/** Runs the tests on each store. */
export function describeStores(name: string, define: (open: () => OpenStore) => void): void {
  for (const driver of ['memory', 'sqlite', 'postgres'] as const) {
    describe.skipIf(driver === 'postgres' && !hasPostgres)(`${name} [${driver}]`, () => {
      let opened: OpenStore | undefined
      beforeAll(async () => {
        opened = await openStore(await createStorePlace(driver))
      })
      afterAll(async () => {
        await opened?.store.close()
        await opened?.place.remove()
      })
      define(() => {
        if (!opened) throw new Error('the store is not open yet')
        return opened
      })
    })
  }
}

/** Ids, scopes and times, without a store. */
export function fixture(clock = standingClock()): Fixture {
  let scopes = 0
  return {
    place: { clock },
    newId: createUuidSource(clock),
    advance: clock.advance,
    scope: () => ({ kind: 'test', id: `scope ${++scopes}` }),
    at: (ms = 0) => toTimestamp(clock.now() + ms),
  }
}

export async function openStore(place: StorePlace): Promise<OpenStore> {
  return { ...fixture(place.clock), place, store: await place.open() }
}

/** What rules work with, over a store; nothing follows the end of a run, unless `parts` say so. */
export const contextOf = (
  { store, newId }: Pick<OpenStore, 'store' | 'newId'>,
  parts: Partial<KernelContext> = {},
): KernelContext => ({ store, newId, log: pino({ enabled: false }), endings: [], hint: () => {}, ...parts })

type Of<T> = Partial<T> & { scope: Scope }

const recorded = (open: Fixture): { id: string; revision: number; createdAt: string; updatedAt: string } => ({
  id: open.newId(),
  revision: 1,
  createdAt: open.at(),
  updatedAt: open.at(),
})

/** The one run that is next. */
export const claimRun = async (context: KernelContext, request: ClaimRequest): Promise<Claimed | undefined> =>
  (await claimRuns(context, request, 1))[0]

export function runOf(open: Fixture, fields: Of<Run>): Run {
  const base = recorded(open)
  return {
    ...base,
    rootRunId: fields.id ?? base.id,
    kind: 'agent_work',
    source: 'manual',
    owner: { type: 'agent', id: 'ana' },
    goal: 'Count the stars',
    status: 'queued',
    priority: 0,
    availableAt: open.at(),
    queueEnteredAt: open.at(),
    attempt: 0,
    context: {},
    policy: {},
    checkpoint: {},
    pendingInterventions: [],
    humanInterventions: [],
    pendingResults: [],
    budgetUsage: {},
    budgetReservations: {},
    budgetAllocations: {},
    lastAppliedTurn: 0,
    ...fields,
  }
}

export const objectiveOf = (open: Fixture, fields: Of<Objective>): Objective => ({
  ...recorded(open),
  owner: { type: 'agent', id: 'ana' },
  title: 'Stars',
  goal: 'Know how many there are',
  status: 'active',
  priority: 0,
  budgetAllocations: {},
  ...fields,
})

export const turnOf = (open: Fixture, fields: Of<Turn> & { runId: string }): Turn => ({
  ...recorded(open),
  sequence: 1,
  status: 'running',
  skillSelections: [],
  decisions: [],
  requestedActions: [],
  usage: {},
  startedAt: open.at(),
  ...fields,
})

export const callOf = (open: Fixture, fields: Of<ActionCall> & { runId: string }): ActionCall => ({
  ...recorded(open),
  deploymentId: 'ana',
  bindingId: 'mail',
  bindingRevision: 1,
  skillId: 'mail',
  skillVersion: '1.0.0',
  action: 'send',
  status: 'ready',
  risk: 'external',
  sideEffect: 'external',
  arguments: {},
  resolvedArguments: {},
  credentialRefs: {},
  evidenceRefs: [],
  idempotencyKey: open.newId(),
  invocationDigest: 'a'.repeat(64),
  attempt: 0,
  maxAttempts: 3,
  availableAt: open.at(),
  ...fields,
})

export const approvalOf = (
  open: Fixture,
  fields: Of<Approval> & { runId: string; actionCallId: string },
): Approval => ({
  ...recorded(open),
  status: 'pending',
  risk: 'external',
  summary: 'Send a mail',
  proposedAction: {},
  evidenceRefs: [],
  eligibleApprovers: [{ type: 'role', id: 'operator' }],
  destinations: [],
  expiresAt: open.at(86_400_000),
  timeoutDecision: 'expire',
  ...fields,
})

export const eventOf = (open: Fixture, fields: Of<NewEvent>): NewEvent => ({
  id: open.newId(),
  eventType: 'run.created',
  actor: { type: 'user', id: 'anonymous' },
  actorSource: 'claimed',
  summary: 'Created',
  createdAt: open.at(),
  ...fields,
})
