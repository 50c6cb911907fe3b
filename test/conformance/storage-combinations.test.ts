import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import { runCli } from '../cli/run-cli.ts'
import { expectError, expectOk } from '../support/expectations.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { startPgvector, type PgvectorServer } from '../support/pgvector.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'
import { startS3, type S3Server } from '../support/s3.ts'

/** What the seams of a server may be: drivers, their aliases, and SQLite files of their own (`sqlite file`). */
const SEAMS = {
  metadata: ['sqlite', 'postgres'],
  vector: ['sqlite', 'sqlite-vec', 'sqlite file', 'postgres', 'pgvector'],
  graph: ['sqlite', 'sqlite_graph', 'sqlite file', 'postgres', 'none'],
  ledger: ['sqlite', 'sqlite file', 'postgres', 'file'],
  content: ['none', 'sqlite', 'sqlite file', 'postgres', 'file', 's3'],
} as const
type Seam = keyof typeof SEAMS
type Combination = Record<Seam, string>

const seams = Object.keys(SEAMS).filter((seam): seam is Seam => seam in SEAMS)

const product = (): Combination[] =>
  SEAMS.metadata.flatMap((metadata) =>
    SEAMS.vector.flatMap((vector) =>
      SEAMS.graph.flatMap((graph) =>
        SEAMS.ledger.flatMap((ledger) =>
          SEAMS.content.map((content) => ({ metadata, vector, graph, ledger, content })),
        ),
      ),
    ),
  )

/** Few combinations in which every two drivers of two seams meet. */
function pairwise(all: readonly Combination[]): Combination[] {
  const pairsOf = (row: Combination): string[] =>
    seams.flatMap((a, i) => seams.slice(i + 1).map((b) => `${a} ${row[a]} ${b} ${row[b]}`))
  const missing = new Set(all.flatMap(pairsOf))
  const chosen: Combination[] = []
  while (missing.size > 0) {
    const gain = (row: Combination): number => pairsOf(row).filter((pair) => missing.has(pair)).length
    const best = all.reduce((a, b) => (gain(b) > gain(a) ? b : a))
    chosen.push(best)
    for (const pair of pairsOf(best)) missing.delete(pair)
  }
  return chosen
}

let pgvector: PgvectorServer
let s3: S3Server
beforeAll(async () => {
  ;[pgvector, s3] = await Promise.all([startPgvector(), startS3()])
})
afterAll(async () => {
  await Promise.all([pgvector.stop(), s3.stop()])
})

const usesPostgres = (row: Combination): boolean => Object.values(row).includes('postgres')

/** The environment of a server whose seams are these; PostgreSQL seams are in the metadata database, if that is PostgreSQL. */
async function environment(row: Combination, dataDir: string): Promise<Record<string, string>> {
  const env: Record<string, string> = { HOME: dataDir, MEM_DATA_DIR: dataDir }
  const database = usesPostgres(row) ? await createPostgresDatabase() : undefined
  if (database) onTestFinished(() => database.drop())
  if (row.vector === 'pgvector') await pgvector.clear()
  for (const seam of seams) {
    const [driver = '', own] = row[seam].split(' ')
    const key = `MEM_${seam.toUpperCase()}`
    env[`${key}_DRIVER`] = driver
    if (own) env[`${key}_DSN`] = join(dataDir, `${seam}.db`)
    else if (driver === 'sqlite' && seam !== 'metadata') env[`${key}_DSN`] = join(dataDir, 'mem.db')
    else if (driver === 'pgvector') env[`${key}_DSN`] = pgvector.url
    else if (driver === 's3') Object.assign(env, s3.env, { [`${key}_DSN`]: `s3://bodies/${dataDir.split('/').at(-1)}` })
    else if (driver === 'postgres' && (seam === 'metadata' || row.metadata !== 'postgres')) {
      env[`${key}_DSN`] = database?.url ?? ''
    }
  }
  return env
}

/** The service as a user goes through it, over these stores, with a restart on the way. */
async function expectWhole(row: Combination, env: Record<string, string>, dataDir: string): Promise<void> {
  const dialect = row.metadata === 'postgres' ? 'postgres' : 'sqlite'
  const start = (): Promise<MemoryApi> =>
    startMemoryApi({ dialect, dataDir, env, postgresUrl: env['MEM_METADATA_DSN'] ?? '' })
  let api = await start()
  const call = (method: string, path: string, body?: unknown) => api.call(method, `/workspaces/${ws}${path}`, body)
  const ws = await api.workspace()
  const bread = await api.imprint(ws, 'The keeper likes rye bread.', { tags: { topic: 'food' } })
  const lamp = await api.imprint(ws, 'The lamp is lit at dusk.', { tags: { topic: 'light' } })
  const expectReady = async (id: string): Promise<void> => {
    const isReady = async () => (await call('GET', `/memories/${id}`)).body.recall_ready
    await expect.poll(isReady).toBe(true)
  }
  const recalled = async (request: object): Promise<string[]> =>
    expectOk(await call('POST', '/recall', { k: 1, ...request })).results.map((hit: { text: string }) => hit.text)
  for (const id of [bread, lamp]) await expectReady(id)
  for (const mode of ['keyword', 'vector', 'hybrid']) {
    expect(await recalled({ query: 'rye bread', mode })).toEqual(['The keeper likes rye bread.'])
    const lit = { tags: { topic: 'light' } }
    expect(await recalled({ query: 'the keeper of the lamp', mode, filters: lit })).toEqual([
      'The lamp is lit at dusk.',
    ])
  }

  const first = expectOk(await call('GET', `/memories/${bread}`)).head_watermark
  expectOk(await call('POST', `/memories/${bread}:append`, { content: ' And tea.' }))
  const { head_watermark: head } = expectOk(await call('GET', `/memories/${bread}`))
  const patch = [{ old_string: 'rye', new_string: 'oat' }]
  expectOk(await call('PATCH', `/memories/${bread}`, { patch, expected_watermark: head }))
  expectOk(await call('PUT', `/memories/${lamp}/tags/state`, { value: 'on' }), 204)
  const edges = `/memories/${bread}/edges`
  const link = { target_memory_id: lamp, edge_type: 'mentions' }
  const withoutGraph = { seam: 'graph', driver: 'none' }
  if (row.graph === 'none') {
    expectError(await call('POST', edges, link), 501, 'capability_unavailable', withoutGraph)
  } else {
    expectOk(await call('POST', edges, link), 201)
    expectError(await call('POST', edges, link), 409, 'already_exists')
  }

  await api.stop()
  api = await start()
  expect(expectOk(await call('GET', `/memories/${bread}`)).content).toBe('The keeper likes oat bread. And tea.')
  expect(expectOk(await call('GET', `/memories/${bread}@${first}`)).content).toBe('The keeper likes rye bread.')
  expect(expectOk(await call('GET', `/memories/${lamp}`)).tags).toEqual({ topic: 'light', state: 'on' })
  await expectReady(bread)
  for (const mode of ['keyword', 'vector', 'hybrid']) {
    expect(await recalled({ query: 'oat bread', mode })).toEqual(['The keeper likes oat bread. And tea.'])
  }
  const steps = await call('POST', '/graph/traverse', { seed_memory_id: bread, depth: 1 })
  if (row.graph === 'none') expectError(steps, 501, 'capability_unavailable', withoutGraph)
  expect(JSON.stringify(steps.body).includes(lamp)).toBe(row.graph !== 'none')

  const forgotten = expectOk(await call('DELETE', `/memories/${lamp}?redact_audit=true`))
  expect(forgotten).toMatchObject({ cascaded_edges: row.graph === 'none' ? 0 : 1 })
  for (const mode of ['keyword', 'vector', 'hybrid']) {
    expect(await recalled({ query: 'the lamp at dusk', mode, k: 5 })).not.toContain('The lamp is lit at dusk.')
  }
  expectError(await call('GET', `/memories/${lamp}`), 404, 'not_found')
  const ledger = await call('GET', '/ledger?order=asc&limit=1000')
  const ops = ['workspace_create', 'agent_register', 'imprint', 'imprint', 'append', 'patch', 'tag_set']
  const graphOps = row.graph === 'none' ? [] : ['link', 'edge_cascade_forget']
  const isFile = row.ledger === 'file'
  if (isFile) expectError(ledger, 501, 'capability_unavailable', { seam: 'ledger', driver: 'file' })
  const entries: { op: string; seq: number }[] = isFile ? [] : expectOk(ledger).entries
  expect(entries.map(({ op }) => op)).toEqual(isFile ? [] : [...ops, ...graphOps, 'forget'])
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
  expect(expectOk(await api.call('GET', '//readyz')).adapter).toEqual({ primary: 'ok', vector: 'ok', ledger: 'ok' })
  await api.stop()
  const { code, stdout, stderr } = await runCli(['ledger', 'verify', '-w', ws, '-o', 'json'], { env })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, entries: ops.length + graphOps.length + 1 })
}

function makeDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-seams-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** Every two drivers meet; with COMBINATIONS=all everything meets everything, which takes half an hour. */
const rows = process.env['COMBINATIONS'] === 'all' ? product() : pairwise(product())

describe('memory#136 drivers and aliases in any combination', () => {
  test.each(rows.filter((row) => hasPostgres || !usesPostgres(row)))(
    'metadata $metadata, vectors $vector, graph $graph, ledger $ledger, content $content',
    async (row) => {
      const dataDir = makeDataDir()
      await expectWhole(row, await environment(row, dataDir), dataDir)
    },
  )

  test('all in one PostgreSQL with pgvector', async () => {
    await pgvector.clear()
    const row = { metadata: 'postgres', vector: 'pgvector', graph: 'postgres', ledger: 'postgres', content: 'postgres' }
    const dataDir = makeDataDir()
    const drivers = seams.map((seam) => [`MEM_${seam.toUpperCase()}_DRIVER`, row[seam]])
    const env = { HOME: dataDir, MEM_DATA_DIR: dataDir, MEM_METADATA_DSN: pgvector.url, ...Object.fromEntries(drivers) }
    await expectWhole(row, env, dataDir)
  })

  test.each(['metadata', 'vector', 'graph', 'ledger', 'content'] as const)(
    'a newer schema of %s refuses',
    async (seam) => {
      const dataDir = makeDataDir()
      const dsn = join(dataDir, `${seam}.db`)
      const env = { [`MEM_${seam.toUpperCase()}_DRIVER`]: 'sqlite', [`MEM_${seam.toUpperCase()}_DSN`]: dsn }
      await (await startMemoryApi({ dialect: 'sqlite', dataDir, env })).stop()
      const database = openDatabase({ dialect: 'sqlite', dsn, synchronous: 'normal' })
      await database.run('UPDATE schema_migrations SET version = 99 WHERE version = 1')
      await database.close()
      await expect(startMemoryApi({ dialect: 'sqlite', dataDir, env })).rejects.toMatchObject({
        name: 'ConfigError',
        message: expect.stringMatching(/version 99.*upgrade mem/),
      })
    },
  )
})
