import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { newPostgresStore, newSqliteStore } from '../../src/kernel/store/store.ts'
import { deskSkill, openStage, servedParts, useDesk, type Stage } from '../kernel/actions-support.ts'
import { openKernel, type OpenKernel } from '../kernel/api.ts'
import { fixture } from '../kernel/support.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'

const desk = useDesk()
let built = ''
beforeAll(async () => {
  // Within the checkout: there it finds its packages.
  built = mkdtempSync(join(packageRoot, 'node_modules/.mem-test-'))
  await build({
    entryPoints: [join(import.meta.dirname, 'kernel-caller.ts')],
    outfile: join(built, 'kernel-caller.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  })
})
afterAll(() => rmSync(built, { recursive: true, force: true }))

interface Place {
  address: string
  remove(): Promise<void>
}

async function createPlace(dialect: 'sqlite' | 'postgres'): Promise<Place> {
  if (dialect === 'postgres') {
    const database = await createPostgresDatabase()
    return { address: database.url, remove: () => database.drop() }
  }
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-kernel-calls-'))
  return {
    address: join(directory, 'kernel.db'),
    remove: async () => rmSync(directory, { recursive: true, force: true }),
  }
}

for (const dialect of ['sqlite', 'postgres'] as const) {
  describe.skipIf(dialect === 'postgres' && !hasPostgres)(`a worker that is killed [${dialect}]`, () => {
    let place: Place | undefined
    let kernel: OpenKernel | undefined
    let ahead = 0
    beforeAll(async () => {
      place = await createPlace(dialect)
      const { address } = place
      // The time of the processes that die, and later.
      const clock = { now: () => Date.now() + ahead, advance: (ms: number) => void (ahead += ms) }
      const open = () =>
        dialect === 'sqlite' ? newSqliteStore(address, { clock }) : newPostgresStore(address, { clock })
      const store = await open()
      const storePlace = { driver: dialect, clock, open, remove: async () => {} }
      kernel = await openKernel({ ...fixture(clock), place: storePlace, store }, servedParts(desk))
    })
    afterAll(async () => {
      await kernel?.stop()
      await kernel?.store.close()
      await place?.remove()
    })

    /** Another process makes the call of a new run, and dies at this point; later its lease is over. */
    async function proposeAndDie(stage: Stage, action: string, point: string): Promise<string> {
      ahead = 0
      const { id } = await stage.begin()
      await stage.propose(id, { action })
      const skill = JSON.stringify(deskSkill(desk.service().url))
      const args = [join(built, 'kernel-caller.mjs'), dialect, place?.address ?? '', stage.scope.id, point, skill]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
      const [, signal] = await once(child, 'close')
      expect(signal).toBe('SIGKILL')
      ahead = 120_000
      return id
    }

    const opened = (): OpenKernel => {
      if (!kernel) throw new Error('the kernel is not open yet')
      return kernel
    }
    const seen = async (stage: Stage, runId: string): Promise<number> => {
      const { id } = await stage.call(runId)
      return desk.service().effects.filter(({ body }) => body.invocationId === id).length
    }

    test('kernel#50 between claim and mark nothing was sent: the call is made once, a write too', async () => {
      const stage = await openStage(opened())
      for (const action of ['look', 'note']) {
        const run = await proposeAndDie(stage, action, 'claimed')
        expect(await stage.call(run)).toMatchObject({ status: 'running', attempt: 1, leaseOwner: 'mortal' })
        expect(await stage.work()).toBe(true)
        expect(await stage.call(run)).toMatchObject({ status: 'succeeded', attempt: 2, recoveredRunning: true })
        expect(await seen(stage, run)).toBe(1)
        expect((await stage.run(run)).status).toBe('queued')
      }
    })

    test('kernel#50 between mark and end a read is sent again', async () => {
      const stage = await openStage(opened())
      for (const [point, times] of [
        ['marked', 1],
        ['answered', 2],
      ] as const) {
        const run = await proposeAndDie(stage, 'look', point)
        expect(await stage.work()).toBe(false)
        expect(await stage.call(run)).toMatchObject({ status: 'ready', error: 'the worker was lost' })
        ahead += 1000
        expect(await stage.work()).toBe(true)
        expect(await stage.call(run)).toMatchObject({ status: 'succeeded', attempt: 2 })
        expect(await seen(stage, run)).toBe(times)
      }
    })

    test('kernel#50 between mark and end a write is ambiguous, and never sent again by itself', async () => {
      const stage = await openStage(opened())
      for (const [point, times] of [
        ['marked', 0],
        ['answered', 1],
      ] as const) {
        const run = await proposeAndDie(stage, 'note', point)
        expect(await stage.work()).toBe(false)
        expect((await stage.call(run)).status).toBe('ambiguous')
        expect(await stage.run(run)).toMatchObject({
          status: 'waiting_for_event',
          humanInterventions: [{ kind: 'action_outcome', status: 'pending' }],
        })
        ahead += 3_600_000
        expect(await stage.work()).toBe(false)
        expect(await seen(stage, run)).toBe(times)
      }
    })

    test('kernel#50 after the end nothing is left to do', async () => {
      const stage = await openStage(opened())
      const run = await proposeAndDie(stage, 'note', 'ended')
      expect(await stage.work()).toBe(false)
      expect(await stage.call(run)).toMatchObject({ status: 'succeeded', attempt: 1 })
      expect((await stage.run(run)).status).toBe('queued')
      expect(await seen(stage, run)).toBe(1)
    })
  })
}
