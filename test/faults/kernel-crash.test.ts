import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { Step } from '../../src/kernel/engine/parts.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { createRun, type NewRun } from '../../src/kernel/runs/create.ts'
import { Kernel } from '../../src/kernel/service.ts'
import { listEvents } from '../../src/kernel/store/events.ts'
import { readRecord } from '../../src/kernel/store/records.ts'
import { listRuns, runs } from '../../src/kernel/store/runs.ts'
import { newPostgresStore, newSqliteStore, type KernelStore } from '../../src/kernel/store/store.ts'
import { listTurns } from '../../src/kernel/store/turns.ts'
import { randomSource } from '../memory/search/random-vectors.ts'
import { createPostgresDatabase } from '../support/postgres.ts'
import { startScriptedModel, type ScriptedModel } from '../support/scripted-model.ts'
import { describeOnBothDatabases, ROUNDS, type Dialect } from './place.ts'

const SCOPE = { kind: 'test', id: 'faults' }
const WORKER = join(packageRoot, 'node_modules/.cache/mem-test', `kernel-worker-${process.pid}.mjs`)

interface Place {
  address: string
  /** Opens the store anew, as another process does. */
  open(): Promise<KernelStore>
  remove(): Promise<void>
}

async function createPlace(dialect: Dialect): Promise<Place> {
  if (dialect === 'postgres') {
    const database = await createPostgresDatabase()
    return { address: database.url, open: () => newPostgresStore(database.url), remove: () => database.drop() }
  }
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-kernel-crash-'))
  const address = join(directory, 'kernel.db')
  return {
    address,
    open: () => newSqliteStore(address),
    remove: async () => rmSync(directory, { recursive: true, force: true }),
  }
}

function startWorker(place: Place, model: ScriptedModel, killAt?: Step): ChildProcess & { ended: Promise<unknown> } {
  const env = { ...process.env, KERNEL_STORE: place.address, KERNEL_MODEL: model.baseUrl }
  const child = spawn(process.execPath, [WORKER], {
    env: killAt ? { ...env, KERNEL_KILL_AT: killAt } : env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const killWithUs = (): boolean => child.kill('SIGKILL')
  process.once('exit', killWithUs)
  const ended = once(child, 'close').finally(() => process.off('exit', killWithUs))
  return Object.assign(child, { ended })
}

async function create(store: KernelStore, goal: string, more: Partial<NewRun> = {}): Promise<Run> {
  const { context } = new Kernel({ store, log: pino({ enabled: false }), components: [] })
  const fields = { owner: { type: 'agent' as const, id: 'ana' }, goal, ...more }
  return (await makeChange(context, SCOPE, BY_KERNEL, (change) => createRun(change, fields))).result
}

/** What holds of a run whatever was killed: turns without gaps, each applied once, events without gaps. */
async function expectWhole(store: KernelStore, run: Run, turns: number): Promise<void> {
  const { items } = await listTurns(store.database, SCOPE, { runId: run.id, limit: 100 })
  expect(items.map(({ sequence, status }) => [sequence, status])).toEqual(
    Array.from({ length: turns }, (_, i) => [i + 1, 'completed']),
  )
  const page = { order: 'asc' as const, limit: 1000, details: true }
  const events = (await listEvents(store.database, SCOPE, { runId: run.id }, page)).map(({ event }) => event)
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1))
  const applied = events.filter(({ eventType }) => eventType === 'run.transitioned')
  expect(applied.map(({ payload }) => payload?.['turnSequence'])).toEqual(items.map(({ sequence }) => sequence))
}

describeOnBothDatabases('a worker that is killed', (dialect) => {
  let model: ScriptedModel
  let place: Place
  beforeAll(async () => {
    const entryPoints = [join(packageRoot, 'test/faults/kernel-worker.ts')]
    await build({ entryPoints, bundle: true, platform: 'node', format: 'esm', packages: 'external', outfile: WORKER })
    model = await startScriptedModel()
    place = await createPlace(dialect)
    await (await place.open()).close()
  })
  afterAll(async () => {
    await model.close()
    await place.remove()
    rmSync(WORKER, { force: true })
  })

  const ended = async (store: KernelStore, id: string): Promise<Run> => {
    await expect.poll(async () => (await readRecord(store.database, runs, SCOPE, id)).status).toBe('completed')
    return readRecord(store.database, runs, SCOPE, id)
  }

  // With a budget the claim does not begin the turn: there is more to write than that.
  const BUDGET = { maxTurns: 9 }

  test.each([
    // What the store holds then; calls of the model and attempts when all is done.
    ['claimed', {}, { status: 'running', turns: ['running'], calls: 1, attempt: 2 }],
    ['claimed', { budget: BUDGET }, { status: 'running', turns: [], calls: 1, attempt: 2 }],
    ['begun', {}, { status: 'running', turns: ['running'], calls: 1, attempt: 2 }],
    ['begun', { budget: BUDGET }, { status: 'running', turns: ['running'], calls: 1, attempt: 2 }],
    ['answered', {}, { status: 'running', turns: ['running'], calls: 2, attempt: 2 }],
    ['applied', {}, { status: 'completed', turns: ['completed'], calls: 1, attempt: 1 }],
  ] as const)('kernel#50 right after %s, of a run with %j', async (step, fields, expected) => {
    const goal = `Killed ${step} ${JSON.stringify(fields)} ${dialect}`
    model.script(goal, [{ outcome: { status: 'completed', output: { stars: 7 } } }])
    const before = await place.open()
    const { id } = await create(before, goal, fields)
    await before.close()
    await startWorker(place, model, step).ended

    const store = await place.open()
    const { items } = await listTurns(store.database, SCOPE, { runId: id, limit: 10 })
    expect((await readRecord(store.database, runs, SCOPE, id)).status).toBe(expected.status)
    expect(items.map(({ status }) => status)).toEqual(expected.turns)

    const worker = startWorker(place, model)
    const run = await ended(store, id)
    expect(run).toMatchObject({ output: { stars: 7 }, attempt: expected.attempt, lastAppliedTurn: 1 })
    await expectWhole(store, run, 1)
    const asked = model.asked(goal)
    expect(asked).toHaveLength(expected.calls)
    expect(new Set(asked.map(({ envelope }) => envelope.invocationId)).size).toBe(1)
    worker.kill('SIGTERM')
    await worker.ended
    await store.close()
  })

  test('kernel#50 right after stored: what a turn proposed is done without asking the model again', async () => {
    const goal = `Killed stored ${dialect}`
    const children = [{ key: 'a', goal: `Child of stored ${dialect}` }]
    model.script(goal, [
      { outcome: { fork: { join: 'all', failure: 'wait', children } } },
      { outcome: { status: 'completed', output: { stars: 7 } } },
    ])
    model.script(`Child of stored ${dialect}`, [{ outcome: { status: 'completed' } }])
    const before = await place.open()
    const { id } = await create(before, goal)
    await before.close()
    await startWorker(place, model, 'stored').ended

    const store = await place.open()
    const { items } = await listTurns(store.database, SCOPE, { runId: id, limit: 10 })
    expect((await readRecord(store.database, runs, SCOPE, id)).status).toBe('running')
    expect(items.map(({ status }) => status)).toEqual(['completed'])

    const worker = startWorker(place, model)
    const run = await ended(store, id)
    expect(run).toMatchObject({ output: { stars: 7 }, attempt: 3, lastAppliedTurn: 2 })
    await expectWhole(store, run, 2)
    expect(model.asked(goal)).toHaveLength(2)
    expect(model.asked(`Child of stored ${dialect}`)).toHaveLength(1)
    worker.kill('SIGTERM')
    await worker.ended
    await store.close()
  })

  test(
    'kernel#50 kills at random: each run does what it would have done without',
    { timeout: 60_000 + ROUNDS * 10_000 },
    async () => {
      const random = randomSource(ROUNDS)
      const store = await place.open()
      const steps = 4
      const made: Run[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const goal = `Random ${dialect} ${round}`
        model.script(goal, ({ checkpoint, results }) => {
          const step = Number(checkpoint['step'] ?? 0) + 1
          if (step === 2) {
            const children = ['a', 'b'].map((key) => ({ key, goal: `Child of ${dialect}` }))
            return { outcome: { checkpoint: { step }, fork: { join: 'all', failure: 'wait', children } } }
          }
          if (step < steps) return { outcome: { checkpoint: { step, told: results.length } } }
          return { outcome: { status: 'completed', checkpoint: { step }, output: checkpoint['told'] } }
        })
        model.script(`Child of ${dialect}`, [{ outcome: { status: 'completed' } }])
        made.push(await create(store, goal))
        const worker = startWorker(place, model)
        const before = model.requests.length
        await expect.poll(() => model.requests.length).toBeGreaterThan(before)
        await new Promise((next) => setTimeout(next, random() * 60))
        worker.kill('SIGKILL')
        await worker.ended
      }
      const last = startWorker(place, model)
      for (const { id } of made) {
        const run = await ended(store, id)
        expect(run).toMatchObject({ output: 1, lastAppliedTurn: steps })
        await expectWhole(store, run, steps)
        const page = { limit: 10 }
        const { items } = await listRuns(store.database, SCOPE, { parentRunId: id }, 'created_desc', page)
        expect(items.map(({ status, lastAppliedTurn }) => [status, lastAppliedTurn])).toEqual([
          ['completed', 1],
          ['completed', 1],
        ])
      }
      last.kill('SIGTERM')
      await last.ended
      await store.close()
    },
  )
})
