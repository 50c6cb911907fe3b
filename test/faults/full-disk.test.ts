import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { verifyChain } from '../../src/memory/ledger.ts'
import { findChain } from '../../src/memory/store/chains.ts'
import type { RunningServer } from '../support/server.ts'
import { expectNothingHalfWritten } from './halves.ts'
import { call, createWorkspace } from './http.ts'
import { createPlace, type Place } from './place.ts'

/** A way to make a disk full, and to make room again. */
interface Disk {
  name: string
  isPossible: boolean
  /** Of its mem.yaml. */
  config?: string
  prepare?(place: Place): void
  fill(server: RunningServer): void
  free(server: RunningServer): void
  /** After the last server ended. */
  remove?(place: Place): void
}

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0
const limitFiles = (server: RunningServer, bytes: number | 'unlimited'): Buffer =>
  execFileSync('prlimit', ['--pid', `${server.pid}`, `--fsize=${bytes}:unlimited`])
const data = ({ directory }: { directory: string }): string => join(directory, 'data')

const DISKS: Disk[] = [
  {
    name: 'files that may not grow (EFBIG)',
    isPossible: works('prlimit', '--version'),
    fill: (server) => {
      const sizes = ['mem.db', 'mem.db-wal'].map((file) => statSync(join(server.dataDir, file)).size)
      limitFiles(server, Math.max(...sizes) + 100_000)
    },
    free: (server) => void limitFiles(server, 'unlimited'),
  },
  {
    name: 'a small disk (ENOSPC)',
    isPossible: process.getuid?.() === 0 && works('mountpoint', '/dev/shm'),
    prepare: (place) => {
      mkdirSync(data(place))
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', data(place)])
    },
    fill: () => undefined,
    free: (server) => void execFileSync('mount', ['-o', 'remount,size=100m', data(server)]),
    remove: (place) => void execFileSync('umount', ['--lazy', data(place)]),
  },
]
const SMALL = DISKS.find(({ prepare }) => prepare !== undefined)
if (SMALL)
  DISKS.push({ ...SMALL, name: `${SMALL.name}, bodies in files`, config: 'storage: { content_driver: file }\n' })

async function imprintUntil(server: RunningServer, path: string, isEnough: (statuses: number[]) => boolean) {
  const statuses: number[] = []
  const stored = new Map<string, string>()
  while (!isEnough(statuses)) {
    const replies = Array.from({ length: 8 }, async (_, i) => {
      const content = `note ${statuses.length + i} ${'rye bread '.repeat(100)}`
      const { status, body } = await call(server, 'POST', path, { content })
      if (status === 201) stored.set(body.memory_id, content)
      return status === 500 && body.error_code !== 'internal_error' ? NaN : status
    })
    statuses.push(...(await Promise.all(replies)))
  }
  return { statuses, stored }
}

const failures = (statuses: readonly number[]): number => statuses.filter((status) => status !== 201).length

describe.each(DISKS)('a full disk: $name', (disk) => {
  it.skipIf(!disk.isPossible)('writes fail whole, reads go on, and with room writes do', async () => {
    const place = await createPlace('sqlite', disk.config)
    disk.prepare?.(place)
    onTestFinished(async () => {
      disk.remove?.(place)
      await place.remove()
    })
    const server = await place.start()
    const workspace = await createWorkspace(server)
    const path = `/workspaces/${workspace}/memories`
    const { memory_id: before } = (await call(server, 'POST', path, { content: 'lantern' })).body

    disk.fill(server)
    const full = await imprintUntil(server, path, (statuses) => failures(statuses) > 40)
    expect(new Set(full.statuses)).toEqual(new Set([201, 500]))
    expect((await call(server, 'GET', `${path}/${before}`)).body.content).toBe('lantern')
    const recall = { query: 'lantern', mode: 'keyword' }
    const { body } = await call(server, 'POST', `/workspaces/${workspace}/recall`, recall)
    expect(body.results.map((hit: { memory_id: string }) => hit.memory_id)).toEqual([before])

    disk.free(server)
    const after = await imprintUntil(server, path, (statuses) => statuses.length >= 40)
    expect(new Set(after.statuses)).toEqual(new Set([201]))
    for (const [id, content] of [...full.stored, ...after.stored]) {
      expect((await call(server, 'GET', `${path}/${id}`)).body.content).toBe(content)
    }
    expect(await server.stop()).toBe(0)

    const stores = await place.open()
    await expectNothingHalfWritten(stores)
    const chain = await findChain(stores, workspace)
    expect(await verifyChain(stores, workspace, async () => chain)).toMatchObject({ ok: true })
    const count = 'SELECT count(*) AS n FROM memory WHERE forgotten_at IS NULL'
    expect(await stores.get(count)).toEqual({ n: 1 + full.stored.size + after.stored.size })
    await stores.close()
  })
})
