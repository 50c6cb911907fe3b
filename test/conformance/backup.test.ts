import { createHash } from 'node:crypto'
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config/load.ts'
import { newSqliteStore } from '../../src/kernel/store/store.ts'
import { runCli } from '../cli/run-cli.ts'
import { startMemoryApi } from '../support/memory-api.ts'

let directory: string
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'mem-test-backup-'))))
afterEach(() => rmSync(directory, { recursive: true }))

const at = (...parts: string[]): string => join(directory, ...parts)
const backup = (verb: 'create' | 'restore', dir: string, env: Record<string, string> = {}) =>
  runCli(['backup', verb, dir, '-o', 'json'], { env: { HOME: directory, MEM_DATA_DIR: at('data'), ...env } })

/** Stores apart, below a directory. */
const apart = (data: string): Record<string, string> => ({
  MEM_DATA_DIR: data,
  ...Object.fromEntries(
    ['vector', 'graph', 'ledger'].map((seam) => [`MEM_${seam.toUpperCase()}_DSN`, join(data, `${seam}.db`)]),
  ),
})

test.each([
  ['one file', (data: string) => ({ MEM_DATA_DIR: data }), ['metadata.db', 'kernel.db']],
  ['a file each', apart, ['metadata.db', 'vector.db', 'graph.db', 'ledger.db', 'kernel.db']],
])('a backup under writes shows one moment, and comes back whole: %s', async (_name, envOf, names) => {
  const [env, restored] = [envOf(at('data')), envOf(at('restored'))]
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: at('data'), env })
  const ws = await api.workspace()
  const ids = [await api.imprint(ws, 'The keeper likes rye bread.'), await api.imprint(ws, 'The lamp is lit at dusk.')]
  await api.call('POST', `/workspaces/${ws}/memories/${ids[0]}/edges`, { target_memory_id: ids[1], type: 'mentions' })
  let stopped = false
  const writing = (async () => {
    for (let i = 0; !stopped; i++) await api.imprint(ws, `note ${i}`)
  })()
  const made = await backup('create', at('copy'), env)
  stopped = true
  await writing
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(at('copy')).toSorted()).toEqual([...names, 'manifest.json'].toSorted())
  for (const name of readdirSync(at('copy'))) expect(statSync(at('copy', name)).mode & 0o777).toBe(0o600)
  await api.imprint(ws, 'written after the backup')
  await api.stop()

  expect(await backup('restore', at('copy'), restored)).toMatchObject({ code: 0, stderr: '' })
  const verify = () => runCli(['ledger', 'verify'], { env: { HOME: directory, ...restored } })
  expect(await verify()).toMatchObject({ code: 0, stderr: '' })
  const again = await startMemoryApi({ dialect: 'sqlite', dataDir: at('restored'), env: restored })
  const found = await again.call('POST', `/workspaces/${ws}/recall`, { query: 'rye bread', mode: 'vector', k: 1 })
  expect(found.body.results[0]).toMatchObject({ memory_id: ids[0] })
  const late = await again.call('POST', `/workspaces/${ws}/recall`, { query: 'written after', mode: 'keyword' })
  expect(late.body.results).toEqual([])
  const { edges } = (await again.call('GET', `/workspaces/${ws}/memories/${ids[0]}/edges`)).body
  expect(edges).toHaveLength(1)
  expect(await again.imprint(ws, 'and it goes on')).toMatch(/^mem_/)
  await again.stop()
  expect(await verify()).toMatchObject({ code: 0, stderr: '' })
})

test('nothing is overwritten, and a damaged backup is refused', async () => {
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: at('data') })
  await api.workspace()
  await api.stop()
  expect(await backup('create', at('copy'))).toMatchObject({ code: 0 })
  const manifest = readFileSync(at('copy/manifest.json'), 'utf8')
  const full = await backup('create', at('copy'))
  expect(full).toMatchObject({ code: 4, stdout: '' })
  expect(full.stderr).toContain('is not empty')
  expect(readFileSync(at('copy/manifest.json'), 'utf8')).toBe(manifest)
  expect((await backup('restore', at('copy'))).stderr).toContain('mem.db exists')

  appendFileSync(at('copy/metadata.db'), 'x')
  const elsewhere = { MEM_DATA_DIR: at('elsewhere') }
  const damaged = await backup('restore', at('copy'), elsewhere)
  expect(damaged).toMatchObject({ code: 4, stdout: '' })
  expect(damaged.stderr).toContain('metadata.db is not what was backed up')
  rmSync(at('copy/manifest.json'))
  expect((await backup('restore', at('copy'), elsewhere)).stderr).toContain('holds no backup')
  expect(existsSync(at('elsewhere'))).toBe(false)
})

const PAGE = 4096

/** Another text in place of a piece of a file. */
function spoil(path: string, start: number, bytes: number): void {
  const content = readFileSync(path)
  content.fill('no database ', start, start + bytes)
  writeFileSync(path, content)
}

test.each([
  ['a torn page', (path: string) => spoil(path, 6 * PAGE, PAGE / 2)],
  ['a lost end', (path: string) => truncateSync(path, statSync(path).size / 2)],
  ['a file of something else', (path: string) => spoil(path, 0, 8 * PAGE)],
])('a damaged store gives no backup, and a damaged backup no store: %s', async (_name, damage) => {
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: at('data') })
  const ws = await api.workspace()
  for (let i = 0; i < 20; i++) await api.imprint(ws, `The keeper likes rye bread. ${i}`.repeat(100))
  await api.stop()
  expect(await backup('create', at('copy'))).toMatchObject({ code: 0 })
  const original = readFileSync(at('data/mem.db'))
  damage(at('data/mem.db'))
  copyFileSync(at('data/mem.db'), at('mem.db.damaged'))

  const refused = await backup('create', at('new'))
  expect(refused).toMatchObject({ code: 4, stdout: '' })
  expect(refused.stderr).toContain(`${at('data/mem.db')} is damaged: `)
  expect(refused.stderr).toContain('bring back a backup that is whole')
  expect(existsSync(at('new'))).toBe(false)
  const doctor = await runCli(['doctor'], { env: { HOME: directory, MEM_DATA_DIR: at('data') } })
  expect([doctor.code, doctor.stdout]).toEqual([
    4,
    expect.stringMatching(/failed {2}metadata.*mem\.db: .*(is damaged|malformed|not a database)/),
  ])
  const bytes = readFileSync(at('mem.db.damaged'))
  expect(readFileSync(at('data/mem.db')).equals(bytes)).toBe(true)

  writeFileSync(at('copy/metadata.db'), bytes)
  const manifest = JSON.parse(readFileSync(at('copy/manifest.json'), 'utf8'))
  Object.assign(manifest.files[0], { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') })
  writeFileSync(at('copy/manifest.json'), JSON.stringify(manifest))
  const restored = await backup('restore', at('copy'), { MEM_DATA_DIR: at('restored') })
  expect(restored).toMatchObject({ code: 4, stdout: '' })
  expect(restored.stderr).toContain(`${at('copy/metadata.db')} is damaged: `)
  expect(readdirSync(at('restored'))).toEqual([])
  expect(readdirSync(at('copy')).toSorted()).toEqual(['kernel.db', 'manifest.json', 'metadata.db'])

  writeFileSync(at('data/mem.db'), original)
  expect(await backup('create', at('new'))).toMatchObject({ code: 0 })
})

test('what is in the way, or no manifest, is told in words', async () => {
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: at('data') })
  await api.stop()
  writeFileSync(at('file'), '')
  const inTheWay = await backup('create', at('file'))
  expect(inTheWay).toMatchObject({ code: 4, stdout: '' })
  expect(inTheWay.stderr).not.toContain('fault of mem')
  expect(await backup('create', at('copy'))).toMatchObject({ code: 0 })
  const there = await backup('restore', at('copy'), { MEM_DATA_DIR: at('file', 'data') })
  expect(there).toMatchObject({ code: 4, stdout: '' })
  expect(there.stderr).not.toContain('fault of mem')
  const manifest = readFileSync(at('copy/manifest.json'), 'utf8')
  writeFileSync(at('copy/manifest.json'), manifest.replace('metadata.db', '../metadata.db'))
  const { stderr } = await backup('restore', at('copy'), { MEM_DATA_DIR: at('elsewhere') })
  expect(stderr).toMatch(/holds no backup .* files\.0\.name in manifest\.json/)
})

test('bodies that are in files are not in it; with a copy of them beside it everything is read again', async () => {
  const env = (data: string): Record<string, string> => ({ MEM_DATA_DIR: at(data), MEM_CONTENT_DRIVER: 'file' })
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: at('data'), env: env('data') })
  const ws = await api.workspace()
  const id = await api.imprint(ws, 'The keeper likes rye bread.')
  const made = await backup('create', at('copy'), env('data'))
  expect(made.code).toBe(0)
  expect(made.stderr).toContain(`Bodies are in ${at('data', 'content')}`)
  await api.stop()
  expect(await backup('restore', at('copy'), env('restored'))).toMatchObject({ code: 0 })
  cpSync(at('data', 'content'), at('restored', 'content'), { recursive: true })
  const again = await startMemoryApi({ dialect: 'sqlite', dataDir: at('restored'), env: env('restored') })
  expect((await again.call('GET', `/workspaces/${ws}/memories/${id}`)).body.content).toBe('The keeper likes rye bread.')
  await again.stop()
})

test('the file of the kernel is in it, where there is one', async () => {
  const env = { MEM_DATA_DIR: at('data') }
  await (await startMemoryApi({ dialect: 'sqlite', dataDir: at('data'), env })).stop()
  const kernel = await newSqliteStore(at('data', 'kernel.db'))
  await kernel.database.run(`INSERT INTO kernel_meta (name, value) VALUES ('kept', 'yes')`)
  expect(await backup('create', at('copy'))).toMatchObject({ code: 0, stderr: '' })
  await kernel.close()
  expect(readdirSync(at('copy'))).toContain('kernel.db')
  expect(await backup('restore', at('copy'), { MEM_DATA_DIR: at('restored') })).toMatchObject({ code: 0 })
  const restored = await newSqliteStore(at('restored', 'kernel.db'))
  expect(await restored.database.get(`SELECT value FROM kernel_meta WHERE name = 'kept'`)).toEqual({ value: 'yes' })
  await restored.close()
  writeFileSync(at('mem.yaml'), 'kernel: {storage: {driver: postgres}}\n')
  const elsewhere = { MEM_CONFIG: at('mem.yaml'), KERNEL_STORAGE_DSN: 'postgres://127.0.0.1:1/x' }
  const without = await backup('create', at('other'), elsewhere)
  expect(without.stderr).toContain('The kernel is in PostgreSQL')
  expect(readdirSync(at('other'))).not.toContain('kernel.db')
  const nowhere = await backup('restore', at('copy'), { ...elsewhere, MEM_DATA_DIR: at('nowhere') })
  expect(nowhere.stderr).toContain('no place for kernel')
})

test('kernel#88 a server of the kernel alone is backed up under writes, comes back, and its doctor finds nothing', async () => {
  const env = (data: string): Record<string, string> => ({
    HOME: directory,
    MEM_ADDR: '127.0.0.1:0',
    MEM_DATA_DIR: at(data),
  })
  const serve = async (data: string) => {
    const config = loadConfig({ env: env(data) })
    const telemetry = { ...config.telemetry, log_level: 'error' as const }
    const app = await createApp({ ...config, telemetry }, { services: ['kernel'] })
    const url = `${await app.listen()}/api/v1/objectives?scopeKind=local&scopeId=default`
    const create = async (title: string): Promise<number> => {
      const body = JSON.stringify({ title, goal: title, owner: { type: 'agent', id: 'ana' } })
      return (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).status
    }
    return {
      create,
      list: async (): Promise<{ title: string }[]> => JSON.parse(await (await fetch(`${url}&limit=100`)).text()),
      close: () => app.close(),
    }
  }
  const first = await serve('data')
  expect(await first.create('before')).toBe(201)
  const writing = Promise.all(Array.from({ length: 20 }, (_, i) => first.create(`while ${i}`)))
  const made = await backup('create', at('copy'))
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('a backup of the kernel alone') })
  expect(new Set(await writing)).toEqual(new Set([201]))
  expect(await runCli(['doctor'], { env: env('data') })).toMatchObject({ code: 0 })
  await first.close()
  expect(readdirSync(at('copy')).toSorted()).toEqual(['kernel.db', 'manifest.json'])

  expect(await backup('restore', at('copy'), env('restored'))).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(at('restored'))).toEqual(['kernel.db'])
  const second = await serve('restored')
  const titles = (await second.list()).map(({ title }) => title)
  expect(titles).toContain('before')
  expect(await second.create('after')).toBe(201)
  await second.close()
})

test('a backup fits only where its files have a place', async () => {
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: at('data') })
  await api.stop()
  expect(await backup('create', at('copy'))).toMatchObject({ code: 0 })
  expect((await backup('restore', at('copy'), apart(at('other')))).stderr).toContain('puts them into several')
  expect((await backup('create', at('none'), { MEM_DATA_DIR: at('none') })).code).toBe(4)
  const postgres = { MEM_METADATA_DRIVER: 'postgres', MEM_METADATA_DSN: 'postgres://127.0.0.1:1/x' }
  const refused = await backup('create', at('pg'), postgres)
  expect(refused).toMatchObject({ code: 4 })
  expect(refused.stderr).toContain('pg_dump')
})
