import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newSqliteStore } from '../../src/kernel/store/store.ts'
import { describeKernels, openKernel } from './api.ts'
import { faultyStore } from './faulty-store.ts'
import { openStore, standingClock } from './support.ts'

const FULL = 'the disk of the store is full: make room, and try again'
const OBJECTIVE = { title: 'Stars', goal: 'Count', owner: { type: 'agent', id: 'ana' } }
const canMount = process.getuid?.() === 0 && spawnSync('mountpoint', ['/dev/shm']).status === 0

/** A file system of its own, gone after the test. */
function mount(size: string): string {
  const directory = join(mkdtempSync(join(tmpdir(), 'mem-test-full-')), 'data')
  mkdirSync(directory)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', directory])
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', directory])
    rmSync(join(directory, '..'), { recursive: true, force: true })
  })
  return directory
}

describeKernels('a full disk', (open) => {
  test.each(['SQLITE_FULL', '53100', 'ENOSPC'])(
    'a write that finds it full (%s) is 503, and health says so',
    async (code) => {
      const kernel = await openKernel({
        ...open(),
        store: faultyStore(open().store, (sql) => sql.includes('INSERT INTO kernel_objectives'), code),
      })
      const api = kernel.api()
      expect((await kernel.call('GET', '/health')).body.status).toBe('ok')
      const refused = await api.post('/objectives', OBJECTIVE)
      expect([refused.status, refused.headers.get('retry-after'), refused.body]).toEqual([503, '1', { error: FULL }])
      const { status, body } = await kernel.call('GET', '/health')
      expect([status, body]).toMatchObject([503, { status: 'down', error: FULL, checks: { store: { detail: FULL } } }])
      expect((await api.get('/objectives')).body).toEqual([])
      open().advance(10_000)
      expect((await kernel.call('GET', '/health')).body.status).toBe('ok')
      await kernel.stop()
    },
  )
})

test.skipIf(!canMount)(
  'a real full disk: health tells it, writes are 503 and whole, reads go on; with room all works',
  async () => {
    const directory = mount('2m')
    const clock = standingClock()
    const opening = () => newSqliteStore(join(directory, 'kernel.db'), { clock })
    const open = await openStore({ driver: 'sqlite', clock, open: opening, remove: async () => {} })
    const { call, api: scoped, stop } = await openKernel(open)
    onTestFinished(async () => {
      await stop()
      await open.store.close()
    })
    const api = scoped()
    const goal = 'Count them all. '.repeat(2000)
    const stored: string[] = []
    const create = async (count: number): Promise<unknown[]> => {
      const replies = await Promise.all(
        Array.from({ length: count }, () => api.post('/objectives', { ...OBJECTIVE, goal })),
      )
      stored.push(...replies.flatMap(({ status, body }) => (status === 201 ? [body.id] : [])))
      return replies.flatMap(({ status, body }) => (status === 201 ? [] : [{ status, body }]))
    }
    let refused: unknown[] = []
    while (refused.length < 10) refused = [...refused, ...(await create(4))]
    expect(new Set(refused.map((reply) => JSON.stringify(reply)))).toEqual(
      new Set([JSON.stringify({ status: 503, body: { error: FULL } })]),
    )
    clock.advance(10_000)
    expect(await call('GET', '/health')).toMatchObject({ status: 503, body: { status: 'down', error: FULL } })
    const listed = await api.get('/objectives?limit=100')
    expect(listed.body.map(({ id }: { id: string }) => id).toSorted()).toEqual(stored.toSorted())

    execFileSync('mount', ['-o', 'remount,size=100m', directory])
    clock.advance(1000)
    expect(await call('GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect(await create(4)).toEqual([])
    expect((await api.get('/activity?limit=100')).body.items).toHaveLength(stored.length)
    expect(readdirSync(directory).filter((name) => name.includes('probe'))).toEqual([])
  },
)
