import { EventEmitter, once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createMemory } from '../../src/app/memory.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Database } from '../../src/database/database.ts'
import { openDatabase } from '../../src/database/open.ts'
import { adjustableClock } from '../support/memory-api.ts'
import { expectNothingHalfWritten } from './halves.ts'
import { call, createWorkspace, tryCall } from './http.ts'
import { createPlace, describeOnBothDatabases, type Place } from './place.ts'

const HOUR_MS = 3600_000

const filesOf = ({ directory }: Place): string[] =>
  readdirSync(join(directory, 'data/content'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)

/** Keeps every mutation of the workspace from its commit, until it is released. */
async function holdCommits(place: Place, workspace: string): Promise<() => Promise<void>> {
  const db = openDatabase({ ...place.address, synchronous: 'normal' })
  const lock = place.dialect === 'postgres' ? 'FOR UPDATE' : ''
  const gate = new EventEmitter()
  const held = once(gate, 'held')
  const holding = db.transaction(async (tx) => {
    await tx.get(`SELECT seq FROM chain WHERE workspace_id = $1 ${lock}`, [workspace])
    gate.emit('held')
    await once(gate, 'release')
  })
  await held
  return async () => {
    gate.emit('release')
    await holding
    await db.close()
  }
}

async function sweep(place: Place, ahead: number): Promise<void> {
  const clock = adjustableClock()
  clock.advance(ahead)
  const flags = { config: join(place.directory, 'mem.yaml'), 'data-dir': join(place.directory, 'data') }
  const config = loadConfig({ flags, env: { HOME: place.directory, ...place.env }, cwd: place.directory })
  const memory = await createMemory(config, clock)
  await memory.service.sweeper.sweep()
  await memory.close()
}

const opsOf = async (stores: Database, workspace: string): Promise<unknown[]> =>
  stores.all(`SELECT op, target, metadata FROM ledger WHERE workspace_id = $1 AND op = 'orphan_gc'`, [workspace])

describeOnBothDatabases('kill -9 between content and metadata', (dialect) => {
  it('memory#134 no Memory is there; the orphan is swept, in an hour and not before', { timeout: 60_000 }, async () => {
    const place = await createPlace(dialect, 'storage: { content_driver: file }\n')
    onTestFinished(() => place.remove())
    const server = await place.start()
    const workspace = await createWorkspace(server)
    const path = `/workspaces/${workspace}/memories`
    const { memory_id: kept } = (await call(server, 'POST', path, { content: 'kept' })).body
    const release = await holdCommits(place, workspace)
    const lost = tryCall(server, 'POST', path, { content: 'lost' })
    const edited = tryCall(server, 'POST', `${path}/${kept}:append`, { content: ' and lost' })
    await expect.poll(() => filesOf(place).length).toBe(3)
    await server.kill()
    await release()
    expect([await lost, await edited]).toEqual([undefined, undefined])

    await sweep(place, HOUR_MS - 60_000)
    expect(filesOf(place)).toHaveLength(3)
    await sweep(place, HOUR_MS + 60_000)
    expect(filesOf(place)).toHaveLength(1)
    await sweep(place, HOUR_MS + 60_000)
    const stores = await place.open()
    await expectNothingHalfWritten(stores)
    expect(await opsOf(stores, workspace)).toEqual([
      { op: 'orphan_gc', target: workspace, metadata: '{"scanned":3,"deleted":2}' },
    ])
    await stores.close()
    const next = await place.start()
    const { body } = await call(next, 'GET', path)
    expect(body.memories.map((memory: { content: string }) => memory.content)).toEqual(['kept'])
    expect(await next.stop()).toBe(0)
  })

  it('memory#134 what a forget has yet to delete is deleted by the next server', { timeout: 60_000 }, async () => {
    const place = await createPlace(dialect, 'storage: { content_driver: file }\n')
    onTestFinished(() => place.remove())
    const server = await place.start()
    const workspace = await createWorkspace(server)
    const path = `/workspaces/${workspace}/memories`
    const { memory_id: id } = (await call(server, 'POST', path, { content: 'secret' })).body
    await server.kill()
    // As a server that died right after the commit of a forget leaves it.
    const db = openDatabase(place.address)
    await db.run('DELETE FROM cell WHERE memory_id = $1', [id])
    await db.run('INSERT INTO outbox (seam, op, payload) VALUES ($1, $2, $3)', [
      'content',
      'erase',
      JSON.stringify({ workspaceId: workspace, memoryId: id }),
    ])
    await db.close()
    const next = await place.start()
    await expect.poll(() => filesOf(place)).toEqual([])
    await next.kill()
  })
})
