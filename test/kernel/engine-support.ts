import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import type { Database } from '../../src/database/database.ts'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { ClaimRequest } from '../../src/kernel/claim.ts'
import type { KernelContext } from '../../src/kernel/context.ts'
import { createSurroundings } from '../../src/kernel/engine/envelope.ts'
import { Held } from '../../src/kernel/engine/held.ts'
import { createModelHost } from '../../src/kernel/engine/model-host.ts'
import type { TurnParts } from '../../src/kernel/engine/parts.ts'
import { takeTurn } from '../../src/kernel/engine/turn.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import type { ActivityEvent } from '../../src/kernel/model/event.ts'
import type { Run, RunCommand } from '../../src/kernel/model/run.ts'
import type { Turn } from '../../src/kernel/model/turn.ts'
import { commandRun } from '../../src/kernel/runs/command.ts'
import { createRun, type NewRun } from '../../src/kernel/runs/create.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { wakeDueRuns } from '../../src/kernel/runs/wake.ts'
import { Kernel } from '../../src/kernel/service.ts'
import { listEvents } from '../../src/kernel/store/events.ts'
import { lockRecord, readRecord } from '../../src/kernel/store/records.ts'
import { runs } from '../../src/kernel/store/runs.ts'
import { listTurns } from '../../src/kernel/store/turns.ts'
import { startScriptedModel, type ScriptedModel } from '../support/scripted-model.ts'
import { claimRun, type OpenStore } from './support.ts'

export const LEASE_MS = 30_000
const UNLIMITED = { agent: 0, owner: 0, objective: 0, concurrency_key: 0 }

/** A scripted model for all tests of a file. */
export function useModel(): () => ScriptedModel {
  let model: ScriptedModel | undefined
  beforeAll(async () => {
    model = await startScriptedModel()
  })
  afterAll(() => model?.close())
  return () => {
    if (!model) throw new Error('the model does not run yet')
    return model
  }
}

export interface Bench {
  kernel: Kernel
  context: KernelContext
  scope: Scope
  parts: TurnParts
  /** A goal that no other test has. */
  goal(name: string): string
  create(fields: Partial<NewRun> & { goal: string }): Promise<Run>
  read(id: string): Promise<Run>
  turns(runId: string): Promise<Turn[]>
  /** Of the run, or of the whole scope; the oldest first. */
  events(runId?: string): Promise<ActivityEvent[]>
  eventTypes(runId?: string): Promise<string[]>
  claim(fields?: Partial<ClaimRequest>): Promise<Held | undefined>
  command(id: string, command: Omit<RunCommand, 'expectedRevision'>): Promise<unknown>
  /** Wakes runs whose time has come. */
  wake(): Promise<void>
  /** One turn of what is claimed. */
  turn(held: Held): Promise<boolean>
  /** Wakes, claims and takes turns until there is nothing to do now; gives the number of claims. */
  work(): Promise<number>
}

/** Works on runs of a scope of its own, one after the other and with no timers: what happens is up to the test. */
export function bench(open: OpenStore, model: ScriptedModel, parts: Partial<TurnParts> = {}): Bench {
  const scope = open.scope()
  const kernel = new Kernel({ store: open.store, log: pino({ enabled: false }), components: [] })
  const { context } = kernel
  const { database } = open.store
  const turnParts: TurnParts = {
    context,
    model: createModelHost({
      baseUrl: model.baseUrl,
      model: 'scripted',
      apiKey: 'key-of-the-model',
      clock: open.store,
    }),
    leaseMs: LEASE_MS,
    turnsPerClaim: 1,
    random: () => 0.5,
    ...parts,
  }
  const readSurroundings = createSurroundings(context)
  const self: Bench = {
    kernel,
    context,
    scope,
    parts: turnParts,
    goal: (name) => `${name}: ${open.place.driver}, ${scope.id}`,
    create: async (fields) => {
      const owner = { type: 'agent' as const, id: 'ana' }
      return (await makeChange(context, scope, BY_KERNEL, (change) => createRun(change, { owner, ...fields }))).result
    },
    read: (id) => readRecord(database, runs, scope, id),
    turns: async (runId) => (await listTurns(database, scope, { runId, limit: 100 })).items,
    events: async (runId) => {
      const filter = runId === undefined ? {} : { runId }
      const listed = await listEvents(database, scope, filter, { order: 'asc', limit: 1000, details: true })
      return listed.map(({ event }) => event)
    },
    eventTypes: async (runId) => (await self.events(runId)).map(({ eventType }) => eventType),
    claim: async (fields = {}) => {
      const claimed = await claimRun(context, {
        scope,
        worker: 'w',
        kinds: ['agent_work', 'conversation'],
        leaseMs: LEASE_MS,
        limits: UNLIMITED,
        knownAgents: false,
        ...fields,
      })
      return claimed && new Held(claimed.run, claimed.fencingToken, open.store.now())
    },
    command: async (id, command) => {
      const { revision } = await self.read(id)
      const whole = { ...command, expectedRevision: revision }
      return makeChange(context, scope, BY_KERNEL, (change) => commandRun(change, id, whole))
    },
    wake: async () => {
      while ((await wakeDueRuns(context)) > 0) continue
    },
    turn: (held) => takeTurn(turnParts, held, { readSurroundings, isLast: true }),
    work: async () => {
      for (let claims = 0; ; claims++) {
        await self.wake()
        const held = await self.claim()
        if (!held) return claims
        await self.turn(held)
      }
    },
  }
  return self
}

/** The surroundings of a turn in which there is nothing. */
export const NOTHING_AROUND = { instructions: {}, eligibleAgents: [], skills: [], actions: [] }

/** What another does to a run meanwhile. */
export const changeRun = async (it: Bench, id: string, next: (run: Run, now: number) => Run): Promise<void> => {
  await makeChange(it.context, it.scope, BY_KERNEL, async (made) => {
    const run = await lockRecord(made.tx, runs, it.scope, id)
    await saveMoved(made, run, next(run, made.now))
  })
}

/** What a test lets go when it wants. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

/** A database of which some methods do something else. */
export const overlaid = (database: Database, methods: Partial<Database>): Database => ({
  dialect: database.dialect,
  location: database.location,
  get: (sql, params) => database.get(sql, params),
  all: (sql, params) => database.all(sql, params),
  run: (sql, params) => database.run(sql, params),
  transaction: (fn) => database.transaction(fn),
  snapshot: (fn) => database.snapshot(fn),
  version: () => database.version(),
  ping: () => database.ping(),
  scrub: () => database.scrub(),
  close: () => database.close(),
  ...methods,
})
