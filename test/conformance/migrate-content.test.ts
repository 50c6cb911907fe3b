import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import type { ContentMigrationState } from '../../src/memory/migrate-content.ts'
import { runCli } from '../cli/run-cli.ts'
import { CONTENT_DRIVERS, createContentPlace, type ContentDriver, type ContentPlace } from '../support/contents.ts'
import { expectOk } from '../support/expectations.ts'
import { describeOnBoth, startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { spawnProgram } from '../support/program.ts'

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
})

async function place(driver: ContentDriver = 'file'): Promise<ContentPlace> {
  const made = await createContentPlace(driver)
  cleanUps.push(() => made.remove())
  return made
}

/** Environment of a command that opens the server's stores beside it. */
const beside = ({ dialect, address, dataDir }: MemoryApi): Record<string, string> => ({
  HOME: dataDir,
  MEM_DATA_DIR: dataDir,
  ...(dialect === 'postgres' && {
    MEM_METADATA_DRIVER: 'postgres',
    MEM_METADATA_DSN: address.dsn,
    MEM_VECTOR_DRIVER: 'postgres',
    MEM_GRAPH_DRIVER: 'postgres',
    MEM_LEDGER_DRIVER: 'postgres',
  }),
})

const targetOf = ({ env, dsn }: ContentPlace): string[] => [
  '--content-driver',
  env['MEM_CONTENT_DRIVER'] ?? '',
  '--content-dsn',
  dsn,
]

const migrate = (api: MemoryApi, ws: string, to: ContentPlace, ...flags: string[]) =>
  migrateIn(beside(api), ws, to, ...flags)

async function migrateIn(stores: Record<string, string>, ws: string, to: ContentPlace, ...flags: string[]) {
  const { MEM_CONTENT_DRIVER: _driver, MEM_CONTENT_DSN: _dsn, ...credentials } = to.env
  const args = ['migrate', 'content', '--workspace', ws, ...targetOf(to), '--max-rate', '0', ...flags]
  const { code, stdout, stderr } = await runCli(args, { env: { ...stores, ...credentials } })
  const states = stdout
    .split('\n')
    .filter(Boolean)
    .map((line): ContentMigrationState => JSON.parse(line))
  return { code, states, last: states.at(-1), stderr }
}

/** A workspace with three Memories, the first with three versions. */
async function threeMemories(
  api: MemoryApi,
  fields: Record<string, unknown> = {},
): Promise<{ ws: string; ids: string[] }> {
  const ws = await api.workspace()
  const ids: string[] = []
  for (const text of ['otters in the river', 'bread and salt 🍞', 'fog over the harbour']) {
    ids.push(await api.imprint(ws, text, fields))
  }
  const M = `/workspaces/${ws}/memories/${ids[0]}`
  expectOk(await api.call('POST', `${M}:append`, { content: ' at dawn' }))
  expectOk(await api.call('POST', `${M}:append`, { content: '\n\nand at noon' }))
  return { ws, ids }
}

async function keysOf({ store }: ContentPlace, ws: string): Promise<string[]> {
  const keys: string[] = []
  for await (const page of store.list(`${ws}/`)) keys.push(...page.map(({ key }) => key))
  return keys
}

async function bodiesInRows(api: MemoryApi, ws: string): Promise<number> {
  const db = openDatabase({ ...api.address, readonly: true })
  const { n } = (await db.get<{ n: number }>(
    `SELECT (SELECT count(content) FROM memory_version v JOIN memory m ON m.memory_id = v.memory_id WHERE workspace_id = $1)
       + (SELECT count(text) FROM cell WHERE workspace_id = $1) AS n`,
    [ws],
  )) ?? { n: NaN }
  await db.close()
  return n
}

describeOnBoth('migrate content', (api) => {
  test.each(CONTENT_DRIVERS)('memory#141 to %s: dry run, copy, rerun, verify, switch, prune', async (driver) => {
    const to = await place(driver)
    const { ws, ids } = await threeMemories(api())
    const done = (counts: Partial<ContentMigrationState>) => ({
      code: 0,
      states: [{ event: 'complete', total: 3, migrated: 0, skipped: 0, errors: 0, ...counts }],
    })
    expect(await migrate(api(), ws, to, '--dry-run')).toMatchObject(done({ migrated: 3 }))
    expect(await keysOf(to, ws)).toEqual([])
    expect(await migrate(api(), ws, to)).toMatchObject(done({ migrated: 3 }))
    expect(await keysOf(to, ws)).toHaveLength(5)
    expect(await migrate(api(), ws, to)).toMatchObject(done({ skipped: 3 }))
    expect(await migrate(api(), ws, to, '--verify')).toMatchObject(done({ skipped: 3, mismatches: 0 }))
    const { entries } = expectOk(await api().call('GET', `/workspaces/${ws}/ledger?op=migrate_content`))
    expect(entries).toMatchObject([{ target: ws, metadata: { total: 3, migrated: 3, errors: 0 } }])

    const { dialect, dataDir, address } = api()
    const switched = await startMemoryApi({ dialect, dataDir, postgresUrl: address.dsn, env: to.env })
    cleanUps.push(() => switched.stop())
    const M = `/workspaces/${ws}/memories`
    const read = async () => expectOk(await switched.call('GET', `${M}/${ids[0]}`))
    expect((await read()).content).toBe('otters in the river at dawn\n\nand at noon')
    expect(await migrate(api(), ws, to, '--prune', '--dry-run')).toMatchObject(done({ migrated: 3, mismatches: 0 }))
    expect(await bodiesInRows(api(), ws)).toBeGreaterThan(0)
    expect(await migrate(api(), ws, to, '--prune')).toMatchObject(done({ migrated: 3, mismatches: 0 }))
    expect(await bodiesInRows(api(), ws)).toBe(0)
    expect((await read()).content).toBe('otters in the river at dawn\n\nand at noon')
    const { watermarks } = expectOk(await switched.call('GET', `${M}/${ids[0]}/watermarks`))
    const first = expectOk(await switched.call('GET', `${M}/${ids[0]}@${watermarks.at(-1).watermark}`))
    expect(first.content).toBe('otters in the river')
    expectOk(await switched.call('POST', `${M}/${ids[1]}:append`, { content: ' and butter' }))
    const { results } = expectOk(await switched.call('POST', `/workspaces/${ws}/recall`, { query: 'butter' }))
    expect(results[0].memory_id).toBe(ids[1])
    expect(await migrate(api(), ws, to, '--verify')).toMatchObject(done({ skipped: 3, mismatches: 0 }))
    expectOk(await switched.call('DELETE', `${M}/${ids[0]}`))
    await expect.poll(() => keysOf(to, ws)).toHaveLength(3)
  })

  test('memory#141 from one content store to another: all versions, and nothing is read of the first any more', async () => {
    const [from, to] = [await place('file'), await place('sqlite')]
    const { dialect, dataDir, address } = api()
    const startOn = async ({ env }: ContentPlace): Promise<MemoryApi> => {
      const server = await startMemoryApi({ dialect, dataDir, postgresUrl: address.dsn, env })
      cleanUps.push(() => server.stop())
      return server
    }
    const { ws, ids } = await threeMemories(await startOn(from))
    expect(await bodiesInRows(api(), ws)).toBe(0)
    const stores = { ...beside(api()), ...from.env }
    expect(await migrateIn(stores, ws, to, '--dry-run')).toMatchObject({ code: 0, last: { migrated: 3 } })
    expect(await keysOf(to, ws)).toEqual([])
    expect(await migrateIn(stores, ws, to)).toMatchObject({ code: 0, last: { migrated: 3, errors: 0 } })
    const keys = await keysOf(from, ws)
    expect((await keysOf(to, ws)).toSorted()).toEqual(keys.toSorted())
    expect(await migrateIn(stores, ws, to)).toMatchObject({ code: 0, last: { migrated: 0, skipped: 3 } })
    expect(await migrateIn(stores, ws, to, '--verify')).toMatchObject({ code: 0, last: { skipped: 3, mismatches: 0 } })

    await from.store.delete(keys)
    const server = await startOn(to)
    const M = `/workspaces/${ws}/memories/${ids[0]}`
    const { content, cells } = expectOk(await server.call('GET', M))
    expect([content, cells[0].text]).toEqual(['otters in the river at dawn\n\nand at noon', content])
    const { watermarks } = expectOk(await server.call('GET', `${M}/watermarks`))
    expect(expectOk(await server.call('GET', `${M}@${watermarks.at(-1).watermark}`)).content).toBe(
      'otters in the river',
    )
    const { results } = expectOk(await server.call('POST', `/workspaces/${ws}/recall`, { query: 'salt' }))
    expect(results[0].text).toBe('bread and salt 🍞')
  })

  test('memory#141 a mismatch is exit code 4, and the next copy mends it', async () => {
    const to = await place()
    const { ws, ids } = await threeMemories(api())
    await migrate(api(), ws, to)
    const keys = await keysOf(to, ws)
    await to.store.put(
      keys.find((key) => key.includes(ids[1] ?? '')) ?? '',
      Buffer.from('{"format":1,"cells":[]}\nother'),
    )
    await to.store.delete(keys.filter((key) => key.includes(ids[2] ?? '')))
    for (const flag of ['--verify', '--prune']) {
      const outcome = await migrate(api(), ws, to, flag, ...(flag === '--prune' ? ['--dry-run'] : []))
      expect(outcome).toMatchObject({ code: 4, last: { event: 'complete', total: 3, mismatches: 2 } })
    }
    expect(await migrate(api(), ws, to)).toMatchObject({ code: 0, last: { migrated: 2, skipped: 1 } })
    expect(await migrate(api(), ws, to, '--verify')).toMatchObject({ code: 0, last: { mismatches: 0 } })
  })

  test('memory#141 resume is inclusive; a collection is a scope of its own', async () => {
    const to = await place()
    const { ws, ids } = await threeMemories(api())
    const outcome = await migrate(api(), ws, to, '--resume-from', ids[1] ?? '')
    expect(outcome).toMatchObject({ code: 0, last: { total: 2, migrated: 2 } })
    const stored = await keysOf(to, ws)
    expect(stored.some((key) => key.includes(ids[1] ?? ''))).toBe(true)
    expect(stored.some((key) => key.includes(ids[0] ?? ''))).toBe(false)
    const { id } = expectOk(await api().call('POST', `/workspaces/${ws}/collections`, { name: 'notes' }), 201)
    await api().imprint(ws, 'of the collection', { collection_id: id })
    expect(await migrate(api(), ws, to, '--collection', id)).toMatchObject({ code: 0, last: { total: 1, migrated: 1 } })
  })

  test('migrate content refuses what it cannot work on', async () => {
    const to = await place()
    const ws = await api().workspace()
    expect(await migrate(api(), 'ws_none', to)).toMatchObject({ code: 8, states: [] })
    expect(await migrate(api(), ws, to, '--resume-from', 'mem_none')).toMatchObject({ code: 8, states: [] })
    expect(await migrate(api(), ws, to, '--collection', 'coll_none')).toMatchObject({ code: 8, states: [] })
    expect(await migrate(api(), ws, to, '--max-rate=-1')).toMatchObject({ code: 1, states: [] })
    const bad = await runCli(['migrate', 'content', '-w', ws, '--content-driver', 'tape'], { env: beside(api()) })
    expect(bad).toMatchObject({ code: 78, stdout: '' })
    const none = await runCli(['migrate', 'content', '-w', ws, '--content-driver', 'none'], { env: beside(api()) })
    expect(none).toMatchObject({ code: 78, stdout: '' })
  })

  test('migrate content copies beside a server that writes, and leaves no body of what was forgotten', async () => {
    const to = await place()
    const ws = await api().workspace()
    const M = `/workspaces/${ws}/memories`
    const ids = await Promise.all(Array.from({ length: 60 }, (_, i) => api().imprint(ws, `note ${i}`)))
    let stop = false
    const writing = (async () => {
      for (let i = 0; !stop && i < ids.length; i++) {
        if (i % 3 === 0) expectOk(await api().call('DELETE', `${M}/${ids[i]}`))
        else expectOk(await api().call('POST', `${M}/${ids[i]}:append`, { content: ' and more' }))
      }
    })()
    expect(await migrate(api(), ws, to)).toMatchObject({ code: 0 })
    stop = true
    await writing
    expect(await migrate(api(), ws, to)).toMatchObject({ code: 0, last: { errors: 0 } })
    expect(await migrate(api(), ws, to, '--verify')).toMatchObject({ code: 0, last: { mismatches: 0 } })
  })

  test('memory#141 SIGINT ends it with a token to go on from, exit 4', async () => {
    const to = await place()
    const ws = await api().workspace()
    const ids: string[] = []
    for (const i of Array(6).keys()) ids.push(await api().imprint(ws, `note ${i}`))
    const args = ['migrate', 'content', '-w', ws, ...targetOf(to), '--max-rate', '1']
    const program = spawnProgram(args, { directory: api().dataDir, env: beside(api()) })
    onTestFinished(() => void program.kill('SIGKILL'))
    let output = ''
    program.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const ended = new Promise<number | null>((resolve) => program.on('close', resolve))
    await expect.poll(() => keysOf(to, ws)).not.toEqual([])
    program.kill('SIGINT')
    expect(await ended).toBe(4)
    const last: ContentMigrationState = JSON.parse(output)
    expect(last).toMatchObject({ event: 'interrupted', total: 6, errors: 0, resume_token: ids[last.migrated] })
    const rest = await migrate(api(), ws, to, '--resume-from', last.resume_token ?? '')
    expect(rest).toMatchObject({ code: 0, last: { migrated: 6 - last.migrated, total: 6 - last.migrated } })
  })
})

test('memory#141 over 1000 Memories, longer than a request may take', { timeout: 120_000 }, async () => {
  const to = await place()
  const api = await startMemoryApi({ dialect: 'sqlite' })
  cleanUps.push(() => api.stop())
  const ws = await api.workspace()
  for (let i = 0; i < 1100; i += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, j) => api.imprint(ws, `note ${i + j}`)))
  }
  const { code, states } = await migrate(api, ws, to, '--max-rate', '35', '--timeout', '1s')
  expect(code).toBe(0)
  expect(states.map(({ event, migrated }) => [event, migrated])).toEqual([
    ...Array.from({ length: 11 }, (_, i) => ['progress', 100 * (i + 1)]),
    ['complete', 1100],
  ])
  expect(await migrate(api, ws, to, '--verify')).toMatchObject({ code: 0, last: { skipped: 1100, mismatches: 0 } })
})

test('migrate content: a dry run makes neither a directory nor a database', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-dry-'))
  const api = await startMemoryApi({ dialect: 'sqlite' })
  cleanUps.push(() => api.stop())
  cleanUps.push(async () => rmSync(directory, { recursive: true }))
  const ws = await api.workspace()
  await api.imprint(ws, 'a note')
  for (const driver of ['file', 'sqlite']) {
    const dsn = join(directory, driver)
    const args = ['migrate', 'content', '-w', ws, '--content-driver', driver, '--content-dsn', dsn, '--dry-run']
    const { code, stdout } = await runCli(args, { env: beside(api) })
    expect({ code, last: JSON.parse(stdout) }).toMatchObject({ code: 0, last: { total: 1, migrated: 1 } })
    expect(existsSync(dsn)).toBe(false)
  }
})
