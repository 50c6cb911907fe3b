import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { KernelClient } from '../../src/client/index.ts'
import type { ActivityItem, BindingContent, Run } from '../../src/client/kernel/kernel-types.ts'
import { createSkillCatalog, KernelEngine, newPostgresStore, newSqliteStore } from '../../src/kernel/index.ts'
import { deskSkill } from '../kernel/actions-support.ts'
import { serveHandler, type ServedHandler } from '../kernel/api.ts'
import { randomSource } from '../memory/search/random-vectors.ts'
import { startEffectServer, type EffectServer } from '../support/effect-server.ts'
import { createPostgresDatabase } from '../support/postgres.ts'
import { startScriptedModel, type ScriptedModel } from '../support/scripted-model.ts'
import { describeOnBothDatabases, ROUNDS } from './place.ts'

const SCOPE = { kind: 'test', id: 'random' }
const OWNER = { type: 'agent', id: 'ana' } as const
/** However often it is killed while it looks. */
const skillAt = (url: string): object => {
  const tireless = { maxAttempts: 1000, initialBackoffMs: 1, maxBackoffMs: 10 }
  const { look, note } = Object(deskSkill(url)).actions
  return { ...deskSkill(url), actions: { look: { ...look, retry: tireless }, note } }
}
const STEPS = ['look', 'note', 'look', 'note'] as const
const PROGRAM = join(packageRoot, 'node_modules/.cache/mem-test', `kernel-program-${process.pid}.mjs`)
/** Each takes seconds. */
const KILLS = Math.ceil(ROUNDS / 4)
const AT_ONCE = 4
const UNTIL = { interval: 100, timeout: 60_000 }

describeOnBothDatabases('a program that is killed at random', (dialect) => {
  let address = ''
  let remove: () => Promise<unknown>
  let engine: KernelEngine
  let served: ServedHandler
  let kernel: KernelClient
  let model: ScriptedModel
  let service: EffectServer

  beforeAll(async () => {
    const entryPoints = [join(packageRoot, 'test/faults/kernel-program.ts')]
    await build({ entryPoints, bundle: true, platform: 'node', format: 'esm', packages: 'external', outfile: PROGRAM })
    ;[model, service] = await Promise.all([startScriptedModel(), startEffectServer()])
    if (dialect === 'postgres') {
      const database = await createPostgresDatabase()
      address = database.url
      remove = () => database.drop()
    } else {
      const directory = mkdtempSync(join(tmpdir(), 'mem-test-kernel-random-'))
      address = join(directory, 'kernel.db')
      remove = async () => rmSync(directory, { recursive: true, force: true })
    }
    // One that answers requests and does no work.
    const skillCatalog = await createSkillCatalog([skillAt(service.url)])
    const persistentStore = await (dialect === 'postgres' ? newPostgresStore(address) : newSqliteStore(address))
    engine = new KernelEngine({ persistentStore, skillCatalog, runDispatcher: true, logger: pino({ enabled: false }) })
    await engine.start()
    served = await serveHandler(engine.httpHandler())
    kernel = new KernelClient(served.url, { scope: SCOPE })
    await installAgent()
  })
  afterAll(async () => {
    await served.stop()
    await engine.stop()
    await Promise.all([model.close(), service.close()])
    await remove()
    rmSync(PROGRAM, { force: true })
  })

  async function installAgent(): Promise<void> {
    const authority = { maximumRisk: 'write', maxConcurrentRuns: 100 } as const
    const manifest = { id: 'ana', version: '1', displayName: 'Ana', purpose: 'Notes', systemPrompt: 'Note.', authority }
    const deployment = { id: 'ana', environment: 'test', capacity: { maxConcurrentRuns: 100 } }
    const by = { actorType: 'user', actorId: 'una' } as const
    await kernel.agents.install(
      { manifest: { ...manifest, skillRequirements: [{ skillId: 'desk' }] }, deployment, ...by },
      { idempotencyKey: 'ana' },
    )
    const binding: BindingContent = {
      skillId: 'desk',
      skillVersion: '1.0.0',
      allowedActions: ['look', 'note'],
      maximumRisk: 'write',
    }
    const actor = { type: 'user', id: 'una' }
    await kernel.skills.put(OWNER, 'desk', { binding, expectedRevision: 0, actor, reason: 'to note' })
  }

  function startProgram(): ChildProcess & { ended: Promise<unknown> } {
    const args = [PROGRAM, address, model.baseUrl, JSON.stringify(skillAt(service.url))]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
    const killWithUs = (): boolean => child.kill('SIGKILL')
    process.once('exit', killWithUs)
    const ended = once(child, 'close').finally(() => process.off('exit', killWithUs))
    return Object.assign(child, { ended })
  }

  async function createRun(goal: string): Promise<Run> {
    model.script(goal, ({ checkpoint }) => {
      const step = Number(checkpoint['step'] ?? 0)
      const name = STEPS[step]
      if (name === undefined) return { outcome: { status: 'completed', output: { steps: step } } }
      const action = { bindingId: 'desk', action: name, arguments: { text: `${goal} ${step}` }, summary: name }
      return { outcome: { status: 'running', checkpoint: { step: step + 1 }, action } }
    })
    return (await kernel.runs.create({ owner: OWNER, goal }, { idempotencyKey: goal })).run
  }

  const arrived = (key: string): number =>
    service.effects.filter(({ headers }) => headers['idempotency-key'] === key).length

  /** A person looks whether the service did what nobody knows of, and says so. */
  async function answerQuestions(): Promise<void> {
    for (const run of (await kernel.runs.list({ status: ['waiting_for_event'], limit: 100 })).items) {
      const open = run.humanInterventions.find(({ status }) => status === 'pending')
      if (open?.actionCallId === undefined) continue
      const call = await kernel.actionCalls.get(open.actionCallId)
      expect(call).toMatchObject({ action: 'note', status: 'ambiguous' })
      const outcome = arrived(call.idempotencyKey) > 0 ? 'succeeded' : 'retry'
      await kernel.runs.command(run.id, {
        kind: 'intervene',
        expectedRevision: run.revision,
        humanInterventionId: open.id,
        resolution: { outcome },
      })
    }
  }

  /** All of a run, whatever was killed: each turn and action to its end once, writes done once, events without gaps. */
  async function expectWhole({ id }: Run): Promise<void> {
    const turns = (await kernel.turns.list({ runId: id })).items
    expect(turns.map(({ sequence, status }) => [sequence, status])).toEqual(
      [1, 2, 3, 4, 5].map((sequence) => [sequence, 'completed']),
    )
    const calls = (await kernel.actionCalls.list({ runId: id })).items
    expect(calls.map(({ action, status }) => [action, status])).toEqual(STEPS.map((action) => [action, 'succeeded']))
    const keysOf = (name: string): string[] =>
      calls.filter(({ action }) => action === name).map(({ idempotencyKey }) => idempotencyKey)
    expect(keysOf('note').map(arrived)).toEqual([1, 1])
    for (const key of keysOf('look')) expect(arrived(key)).toBeGreaterThan(0)
    const events: ActivityItem[] = []
    for await (const event of kernel.paginate((at) =>
      kernel.activity({ runId: id, order: 'asc', limit: 100, ...at }),
    )) {
      events.push(event)
    }
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1))
    const told = (type: string): number => events.filter(({ eventType }) => eventType === type).length
    expect(['run.created', 'run.transitioned', 'action.proposed', 'action.succeeded'].map(told)).toEqual([1, 5, 4, 4])
  }

  test(
    'kernel#50 every run reaches its end: reads may repeat, writes never, and events are complete and in order',
    { timeout: 120_000 + KILLS * 20_000 },
    async () => {
      const random = randomSource(KILLS)
      const made: Run[] = []
      const open = async (): Promise<number> => {
        await answerQuestions()
        const now = await Promise.all(made.map(({ id }) => kernel.runs.get(id)))
        return now.filter(({ status }) => status !== 'completed').length
      }
      for (let kill = 0; kill < KILLS; kill++) {
        while ((await open()) < AT_ONCE) made.push(await createRun(`Run ${made.length} on ${dialect}`))
        const before = model.requests.length + service.effects.length
        const program = startProgram()
        const seen = async (): Promise<number> => {
          await answerQuestions()
          return model.requests.length + service.effects.length
        }
        await expect.poll(seen).toBeGreaterThan(before)
        await new Promise((next) => setTimeout(next, random() * 300))
        program.kill('SIGKILL')
        await program.ended
      }
      const last = startProgram()
      await expect.poll(open, UNTIL).toBe(0)
      last.kill('SIGKILL')
      await last.ended
      for (const run of made) await expectWhole(run)
    },
  )
})
