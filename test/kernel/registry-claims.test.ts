import { expect, test } from 'vitest'
import type { Scope } from '../../src/kernel/model/fields.ts'
import { resolveDeployment } from '../../src/kernel/registry/resolve.ts'
import { insertRun } from '../../src/kernel/store/runs.ts'
import { describeKernels, type OpenKernel } from './api.ts'
import { bench, useModel } from './engine-support.ts'
import { BY_USER, install, installVersions } from './registry-support.ts'
import { claimRun, runOf } from './support.ts'

const NO_LIMITS = { agent: 0, owner: 0, objective: 0, concurrency_key: 0 }

const claim = async ({ kernel }: OpenKernel, scope: Scope): Promise<string | undefined> => {
  const request = {
    scope,
    kinds: ['agent_work'] as const,
    worker: 'w',
    leaseMs: 60_000,
    limits: NO_LIMITS,
    knownAgents: true,
  }
  return (await claimRun(kernel.context, request))?.run.id
}

const queue = async (open: OpenKernel, scope: Scope): Promise<string> => {
  const run = runOf(open, { scope })
  await open.store.database.transaction((tx) => insertRun(tx, run))
  return run.id
}

describeKernels('agents and claims', (open) => {
  test('kernel#47 a run of an absent, paused or retired agent stays queued; it runs once the agent does', async () => {
    const api = open().api()
    const id = await queue(open(), api.scope)
    expect(await claim(open(), api.scope)).toBeUndefined()
    const installed = await install(api, { deployment: { rolloutStatus: 'pending' } })
    let { deployment } = installed.body
    expect(await claim(open(), api.scope)).toBeUndefined()
    for (const [rolloutStatus, claimed] of [
      ['paused', undefined],
      ['active', id],
    ]) {
      const { body } = await api.put('/agent-deployments/ana', {
        ...BY_USER,
        deployment: { ...deployment, rolloutStatus },
        expectedRevision: deployment.revision,
        reason: 'r',
      })
      deployment = body.deployment
      expect([rolloutStatus, await claim(open(), api.scope)]).toEqual([rolloutStatus, claimed])
    }
    await api.put('/agent-deployments/ana', {
      ...BY_USER,
      deployment: { ...deployment, rolloutStatus: 'retired' },
      expectedRevision: deployment.revision,
      reason: 'r',
    })
    await queue(open(), api.scope)
    expect(await claim(open(), api.scope)).toBeUndefined()
  })

  test('an agent has as many runs at once as the narrowest of definition, capacity and restrictions allows', async () => {
    const api = open().api()
    const authority = (maxConcurrentRuns: number): object => ({ maximumRisk: 'read', maxConcurrentRuns })
    await install(api, {
      manifest: { version: '1.0.0', authority: authority(1) },
    })
    const wide = { capacity: { maxConcurrentRuns: 4 }, restrictions: { maxConcurrentRuns: 3 } }
    await install(api, { manifest: { version: '2.0.0', authority: authority(4) }, deployment: wide })
    for (let i = 0; i < 5; i++) await queue(open(), api.scope)
    const claims = async (): Promise<number> => {
      let count = 0
      while ((await claim(open(), api.scope)) !== undefined) count++
      return count
    }
    expect(await claims()).toBe(3)
    const back = await api.post('/agent-deployments/ana/rollbacks', { ...BY_USER, expectedRevision: 2 })
    expect(back.body.deployment).toMatchObject({ activeVersion: '1.0.0', ...wide })
    expect(await claims()).toBe(0)
    const paused = { ...back.body.deployment, rolloutStatus: 'paused' }
    const put = await api.put('/agent-deployments/ana', {
      ...BY_USER,
      deployment: paused,
      expectedRevision: 3,
      reason: 'r',
    })
    expect(put.status).toBe(200)
    await api.post('/agent-deployments/ana/activations', { ...BY_USER, version: '2.0.0', expectedRevision: 4 })
    expect(await claims()).toBe(0)
    const active = {
      ...put.body.deployment,
      activeVersion: '2.0.0',
      previousVersion: '1.0.0',
      rolloutStatus: 'active',
      revision: 5,
      restrictions: {},
    }
    await api.put('/agent-deployments/ana', { ...BY_USER, deployment: active, expectedRevision: 5, reason: 'r' })
    expect(await claims()).toBe(1)
  })

  test('a run resolves to the deployment that executes it and the version that runs, while it takes runs', async () => {
    const api = open().api()
    const { database } = open().store
    await installVersions(api, ['1.0.0', '2.0.0'])
    await install(api, { deployment: { id: 'bo', rolloutStatus: 'paused' } })
    const { scope } = api
    const team = { type: 'team', id: 'crew' } as const
    const resolve = async (fields: object): Promise<[string, string] | undefined> => {
      const found = await resolveDeployment(database, scope, runOf(open(), { scope, ...fields }))
      return found && [found.deployment.id, found.definition.version]
    }
    expect(await resolve({})).toEqual(['ana', '2.0.0'])
    expect(await resolve({ owner: team, assignedAgentId: 'ana' })).toEqual(['ana', '2.0.0'])
    expect(await resolve({ owner: team })).toBeUndefined()
    expect(await resolve({ assignedAgentId: 'bo' })).toBeUndefined()
    expect(await resolve({ assignedAgentId: 'cy' })).toBeUndefined()
    expect(await resolve({ scope: open().scope() })).toEqual(['ana', '2.0.0'])
  })
})

const model = useModel()

describeKernels(
  'agents between claim and turn',
  (open) => {
    test('kernel#47 a run whose agent is paused meanwhile goes back into the queue, and runs once the agent does', async () => {
      const api = open().api()
      const it = bench({ ...open(), scope: () => api.scope }, model(), { context: open().kernel.context })
      let { deployment } = (await install(api)).body
      const move = async (rolloutStatus: string): Promise<void> => {
        const reply = await api.put('/agent-deployments/ana', {
          ...BY_USER,
          deployment: { ...deployment, rolloutStatus },
          expectedRevision: deployment.revision,
          reason: 'r',
        })
        deployment = reply.body.deployment
      }
      const goal = it.goal('Wait for the agent')
      model().script(goal, [{ outcome: { status: 'completed' } }])
      const { id } = await it.create({ goal })
      const take = async (before = async (): Promise<void> => {}): Promise<boolean | undefined> => {
        const held = await it.claim({ knownAgents: true })
        await before()
        return held && it.turn(held)
      }
      expect(await take(() => move('paused'))).toBe(false)
      expect(await it.read(id)).toMatchObject({ status: 'queued' })
      expect((await it.events(id)).at(-1)).toMatchObject({
        eventType: 'run.yielded',
        payload: { turnSequence: 0, reason: 'agent_unavailable' },
      })
      expect(await take()).toBeUndefined()
      await move('active')
      await take()
      expect(await it.read(id)).toMatchObject({ status: 'completed', attempt: 2 })
    })

    test('a run that names no agent fails: nobody could ever take it', async () => {
      const api = open().api()
      const it = bench({ ...open(), scope: () => api.scope }, model(), { context: open().kernel.context })
      const { id } = await it.create({ goal: it.goal('For nobody'), owner: { type: 'team', id: 'crew' } })
      const held = await it.claim({ knownAgents: true })
      expect(held && (await it.turn(held))).toBe(false)
      expect(await it.read(id)).toMatchObject({ status: 'failed', error: { code: 'runner_unresolved' } })
    })
  },
  { agents: true },
)
