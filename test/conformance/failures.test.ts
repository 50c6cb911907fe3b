import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createIdSource } from '../../src/base/ids.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createLogger } from '../../src/base/log.ts'
import { packageRoot } from '../../src/base/package-root.ts'
import { version } from '../../src/base/version.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openDatabase } from '../../src/database/open.ts'
import { createListener } from '../../src/http/listener.ts'
import { createEmbedder } from '../../src/memory/embedder/registry.ts'
import { mountMemory } from '../../src/memory/routes/index.ts'
import { LocalSearch } from '../../src/memory/search/local.ts'
import { MemoryService } from '../../src/memory/service.ts'
import { createCellSource } from '../../src/memory/store/cell-source.ts'
import { Bodies } from '../../src/memory/store/content/bodies.ts'
import { vectorRows } from '../../src/memory/store/vector/rows.ts'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { describeOnBoth, startMemoryApi } from '../support/memory-api.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'
import { expectEnvelope, send, type RawReply } from '../support/raw-request.ts'

test('memory#123 injected panic: 500 internal_error, server lives', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-panic-'))
  const database = openDatabase({ dialect: 'sqlite', dsn: join(directory, 'mem.db'), synchronous: 'normal' })
  await migrate(database, 'memory', join(packageRoot, 'migrations/memory'), 0)
  const log = createLogger('fatal', 'json')
  const ids = createIdSource(systemClock)
  const settings = {
    model: 'hash:default',
    providers: {},
    timeoutMs: 1000,
    batchSize: 16,
    queryPrefix: '',
    documentPrefix: '',
  }
  const service = new MemoryService({
    databases: { metadata: database, vector: database, vectors: vectorRows, graph: database, ledger: database },
    index: new LocalSearch(
      createCellSource(database, database, vectorRows, new Bodies(database, undefined, log)),
      1000,
    ),
    createEmbedder: (model) => createEmbedder(model, settings),
    settings: {
      embedding: { model: 'hash:default', inlineTimeoutMs: 1000 },
      limits: { out_edges: 0, batch_edges: 0, memories_per_workspace: 0, workspaces: 0 },
      versionRetentionDays: 0,
      rejectInactiveAgents: false,
    },
    clock: systemClock,
    ids,
    log,
  })
  const listener = createListener({ log, ids, timeoutMs: 1000, allowedOrigins: [] })
  const http = {
    multiTenant: false,
    apiKey: undefined,
    apiKeyId: undefined,
    guardLoopback: false,
    allowedOrigins: [],
    timeoutMs: 1000,
  }
  mountMemory(listener, service, http)
  const url = await listener.listen({ port: 0 })
  const create = (): Promise<RawReply> => send(`${url}/v1/workspaces`, { method: 'POST', body: '{"name":"x"}' })
  const panics = [
    () => {
      throw new Error('secret at /srv/x.ts:7')
    },
    () => Promise.reject(new TypeError('secret')),
    () => Promise.reject(Object.assign(new Error('secret'), { statusCode: 418, code: 'SECRET' })),
    () => Promise.reject('secret'),
    () => Promise.reject(undefined),
  ]
  const real = service.workspaces.create.bind(service.workspaces)
  for (const panic of panics) {
    Object.assign(service.workspaces, { create: panic })
    const reply = await create()
    expect(expectEnvelope(reply, 500, 'internal_error')).toEqual({})
    expect(JSON.stringify(reply)).not.toMatch(/secret|\.ts|stack/i)
    expect(reply.headers['x-request-id']).toMatch(/^req_/)
    expect((await send(`${url}/healthz`)).status).toBe(200)
  }
  Object.assign(service.workspaces, { create: real })
  expect((await create()).status).toBe(201)
  await listener.close()
  await service.close()
  await database.close()
  rmSync(directory, { recursive: true, force: true })
})

test.skipIf(!hasPostgres)('memory#125 /readyz: 503 naming the broken adapter; graph failure alone 200', async () => {
  const down = { ok: false, status: 'degraded' }
  const reason = expect.stringMatching(/^down: ./)
  const fine = { primary: 'ok', vector: 'ok', ledger: 'ok' }
  const cases: [seam: string, status: number, body: object][] = [
    ['ledger', 503, { ...down, adapter: { ...fine, ledger: reason } }],
    ['vector', 503, { ...down, adapter: { ...fine, vector: reason } }],
    ['graph', 200, { ok: true, status: 'ready', adapter: fine }],
  ]
  for (const [seam, status, body] of cases) {
    const database = await createPostgresDatabase()
    const dsn = database.url.replace('postgres@', 'postgres:hunter2@')
    const env = { [`MEM_${seam.toUpperCase()}_DRIVER`]: 'postgres', [`MEM_${seam.toUpperCase()}_DSN`]: dsn }
    const api = await startMemoryApi({ dialect: 'sqlite', env })
    expect((await api.call('GET', '//readyz')).status).toBe(200)
    await database.drop()
    const reply = await api.call('GET', '//readyz')
    expect({ seam, status: reply.status, body: reply.body }).toEqual({ seam, status, body })
    expect(JSON.stringify(reply.body)).not.toContain('hunter2')
    expect((await api.call('GET', '//healthz')).body).toEqual({ ok: true, status: 'live', version })
    await api.stop()
  }
})

const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())

describeOnBoth(
  'failures',
  (api) => {
    test('memory#125 /readyz: every adapter ok', async () => {
      const ready = { ok: true, status: 'ready', adapter: { primary: 'ok', vector: 'ok', ledger: 'ok' } }
      expect(await api().call('GET', '//readyz')).toMatchObject({ status: 200, body: ready })
    })
    test('memory#123 timeout: 500, no half write', async () => {
      const ws = await api().workspace({ embedding_model: 'openai:bag-16' })
      const made = (await api().call('POST', `/workspaces/${ws}/memories`, { content: 'before' })).body
      const path = `/workspaces/${ws}/memories/${made.memory_id}`
      const before = (await api().call('GET', path)).body
      provider.behave = () => 'hangs'
      const writes: [method: string, target: string, body: object][] = [
        ['POST', `/workspaces/${ws}/memories`, { content: 'lost' }],
        ['PUT', path, { content: 'lost', expected_watermark: made.watermark }],
        ['PATCH', path, { patch: [{ old_string: 'before', new_string: 'lost' }], expected_watermark: made.watermark }],
        ['POST', `${path}:append`, { content: 'lost' }],
        ['POST', `/workspaces/${ws}/recall`, { query: 'before', mode: 'vector' }],
      ]
      const replies = await Promise.all(writes.map(([method, target, body]) => api().call(method, target, body)))
      for (const reply of replies) {
        expect(reply).toMatchObject({
          status: 500,
          body: { error_code: 'internal_error', details: { reason: 'timeout' } },
        })
        expect(reply.headers.get('x-request-id')).toMatch(/^req_/)
      }
      provider.recover()
      expect((await api().call('GET', path)).body).toEqual(before)
      expect((await api().call('GET', `/workspaces/${ws}/memories`)).body.memories).toHaveLength(1)
      const { entries } = (await api().call('GET', `/workspaces/${ws}/ledger`)).body
      expect(entries.map(({ op }: { op: string }) => op)).toEqual(['imprint', 'agent_register', 'workspace_create'])
      // Nothing was left behind that would keep the Memory from being written.
      expect((await api().call('POST', `${path}:append`, { content: ' and after' })).status).toBe(200)
    })
  },
  { env: { MEM_SERVER_TIMEOUT: '0.4', OPENAI_BASE_URL: provider.url } },
)
