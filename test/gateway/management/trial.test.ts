import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/gateway/errors.ts'
import type { TestOptions, TestResult } from '../../../src/gateway/kinds/test.ts'
import { AddressRefusedError } from '../../../src/gateway/kinds/upstream.ts'
import type { Health } from '../../../src/gateway/model.ts'
import type { OpenCredential } from '../../../src/gateway/state/organization-state.ts'
import { raiseRevision } from '../../../src/gateway/store/revisions.ts'
import { expectError, expectOk } from '../../platform/support.ts'
import { describeGateway, type GatewayApi } from '../support.ts'

const body = (name: string, fields: object = {}): object => ({
  provider: 'openai',
  name,
  api_key: 'sk-test-0123456789abcdef',
  ...fields,
})

/** What calls have made of the credentials in this process. */
let live: Health = { state: 'unknown', models: [] }
const tried: { credential: OpenCredential; options: TestOptions }[] = []
const recovered: number[] = []

const GOOD: TestResult = { ok: true, mode: 'auth', status: 200, latency_ms: 3, models: ['gpt'] }
const BAD: TestResult = {
  ok: false,
  mode: 'chat',
  model: 'gpt',
  status: 401,
  latency_ms: 4,
  error: { code: 'upstream_credentials_rejected', message: 'wrong key' },
}

describeGateway(
  'trying credentials',
  (api) => {
    const call: GatewayApi['call'] = (...args) => api().call(...args)

    test('gateway#16 a saved credential: what comes of it is its health, and success ends its rest', async () => {
      const { id } = expectOk(await call('POST', '/credentials', body('saved', { default_model: 'good' })), 201)
      const path = `/credentials/${id}`
      const bad = expectOk(await call('POST', `${path}/test`, { mode: 'chat', model: 'bad' }))
      expect(bad).toEqual(BAD)
      expect(tried.at(-1)).toMatchObject({
        credential: { id, defaultModel: 'good', secrets: { api_key: 'sk-test-0123456789abcdef' } },
        options: { mode: 'chat', model: 'bad' },
      })
      expect(expectOk(await call('GET', path))).toMatchObject({
        version: 1,
        health: { state: 'degraded', checked_at: expect.any(String) },
        last_error: {
          code: 'upstream_credentials_rejected',
          status: 401,
          message: 'wrong key',
          at: expect.any(String),
        },
      })
      const { health, states } = api().management
      health.rejected({ organizationId: 1, id, version: 1 }, Date.now() + 600_000, {
        code: 'upstream_credentials_rejected',
        message: 'no',
      })
      await health.flush()
      const rests = () => states.get(1)?.credentials.find((each) => each.id === id)?.rejectedUntil
      expect(rests()).toBeGreaterThan(Date.now())
      expect(expectOk(await call('GET', path)).health).toMatchObject({
        state: 'rejected',
        cooldown_until: expect.any(String),
      })
      expect(expectOk(await call('POST', `${path}/test`))).toEqual(GOOD)
      expect(rests()).toBeUndefined()
      expect(recovered.at(-1)).toBe(id)
      const { last_error, health: after } = expectOk(await call('GET', path))
      expect([last_error, after.state]).toEqual([undefined, 'healthy'])
      health.failed(
        { organizationId: 1, id, version: 1 },
        { code: 'upstream_error', status: 500, message: 'x'.repeat(600) },
      )
      await health.flush()
      expect(expectOk(await call('GET', path)).last_error).toMatchObject({ status: 500, message: 'x'.repeat(500) })
      health.failed({ organizationId: 1, id: 999, version: 1 }, { code: 'upstream_error', message: 'x' })
      await health.flush()
    })

    test('gateway#46 what another process has just changed is tried as it is now', async () => {
      const { id } = expectOk(await call('POST', '/credentials', body('elsewhere', { default_model: 'old' })), 201)
      const other = api().place.open()
      const { management } = api()
      await other.transaction(async (tx) => {
        await raiseRevision(tx, 1)
        const fields = `replace(fields, '"old"', '"new"')`
        await tx.run(`UPDATE gateway_credentials SET version = 2, fields = ${fields} WHERE id = $1`, [id])
      })
      expect(management.states.get(1)?.credentials.find((each) => each.id === id)?.version).toBe(1)
      expectOk(await call('POST', `/credentials/${id}/test`, { mode: 'chat', model: 'good' }))
      expect(tried.at(-1)?.credential).toMatchObject({ id, defaultModel: 'new' })
      await other.close()
    })

    test('gateway#16 the later of call and test is its health', async () => {
      const { id } = expectOk(await call('POST', '/credentials', body('called before')), 201)
      const healthOf = async () => expectOk(await call('GET', `/credentials/${id}`)).health
      live = { state: 'healthy', models: [], checked_at: '2020-01-01T00:00:00.000Z' }
      try {
        expect(await healthOf()).toMatchObject(live)
        expectOk(await call('POST', `/credentials/${id}/test`, { mode: 'chat', model: 'bad' }))
        expect(await healthOf()).toMatchObject({ state: 'degraded', checked_at: expect.stringMatching(/^202[1-9]/) })
        live = { ...live, checked_at: '2999-01-01T00:00:00.000Z' }
        expect(await healthOf()).toMatchObject(live)
      } finally {
        live = { state: 'unknown', models: [] }
      }
    })

    test('an update ends a rest that processes share', async () => {
      const { id } = expectOk(await call('POST', '/credentials', body('mended')), 201)
      const { health } = api().management
      health.rejected({ organizationId: 1, id, version: 1 }, Date.now() + 600_000, {
        code: 'upstream_credentials_rejected',
        message: 'no',
      })
      await health.flush()
      const changed = expectOk(await call('PUT', `/credentials/${id}`, body('mended')))
      expect([changed.health.state, changed.last_error, changed.version]).toEqual(['unknown', undefined, 1])
    })

    test('gateway#14 so does what is disabled and enabled again', async () => {
      const { id } = expectOk(await call('POST', '/credentials', body('off and on')), 201)
      const { health, states } = api().management
      const rests = () => states.get(1)?.credentials.find((each) => each.id === id)?.rejectedUntil
      health.rejected({ organizationId: 1, id, version: 1 }, Date.now() + 600_000, { code: 'rejected', message: 'no' })
      await health.flush()
      expect(expectOk(await call('POST', `/credentials/${id}/disable`)).health.state).toBe('rejected')
      const { health: after, last_error } = expectOk(await call('POST', `/credentials/${id}/enable`))
      expect([rests(), after.state, last_error]).toEqual([
        undefined,
        'unknown',
        expect.objectContaining({ message: 'no' }),
      ])
    })

    test('gateway#33 what was found before an update or a good test, and is not written yet, is forgotten', async () => {
      const { id } = expectOk(await call('POST', '/credentials', body('in time')), 201)
      const { health, states } = api().management
      const rests = () => states.get(1)?.credentials.find((each) => each.id === id)?.rejectedUntil
      const reject = (version: number): void =>
        health.rejected({ organizationId: 1, id, version }, Date.now() + 600_000, { code: 'rejected', message: 'no' })
      reject(1)
      expectOk(await call('PUT', `/credentials/${id}`, body('in time')))
      await health.flush()
      expect([rests(), recovered.at(-1)]).toEqual([undefined, id])
      reject(1)
      expectOk(await call('POST', `/credentials/${id}/test`, {}))
      await health.flush()
      expect(rests()).toBeUndefined()
      expectOk(await call('PUT', `/credentials/${id}`, body('in time', { weight: 2 })))
      reject(1) // by another process, which has not seen the update yet
      await health.flush()
      expect(rests()).toBeUndefined()
      reject(2)
      await health.flush()
      expect(rests()).toBeGreaterThan(Date.now())
    })

    test('what was found of a credential that another process deletes in that moment is dropped', async ({ skip }) => {
      const { database, management, place } = api()
      skip(place.dialect === 'sqlite', 'it has one writer at a time')
      const { id } = expectOk(await call('POST', '/credentials', body('going')), 201)
      const other = place.open()
      let written: Promise<void> | undefined
      await other.transaction(async (tx) => {
        await tx.run('DELETE FROM gateway_credentials WHERE id = $1', [id])
        management.health.failed({ organizationId: 1, id, version: 1 }, { code: 'transient', message: 'no' })
        written = management.health.flush()
        const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
        await expect.poll(() => database.all(waiting)).toHaveLength(1)
      })
      await written
      await other.close()
      expect(await database.all('SELECT 1 FROM gateway_credential_health WHERE credential_id = $1', [id])).toEqual([])
    })

    test('gateway#16 what is not saved is tried, and nothing is stored', async () => {
      const rows = async () => [
        await api().database.all('SELECT * FROM gateway_credentials'),
        await api().database.all('SELECT * FROM gateway_credential_secrets'),
        await api().database.all('SELECT * FROM gateway_audit_records'),
      ]
      const before = await rows()
      const unsaved = body('unsaved', { mode: 'embeddings', model: 'bad', custom_headers: { 'X-A': 'b' }, limits: {} })
      expect(expectOk(await call('POST', '/credentials/test', unsaved))).toEqual(BAD)
      expect(tried.at(-1)).toMatchObject({
        credential: { name: 'unsaved', kind: 'openai', customHeaders: { 'X-A': 'b' }, weight: 1000, isBroken: false },
        options: { mode: 'embeddings', model: 'bad' },
      })
      expect(expectOk(await call('POST', '/credentials/test', body('unsaved', { scope: 'user' })))).toEqual(GOOD)
      const without = await call('POST', '/credentials/test', body('unsaved', { api_key: '' }))
      expectError(without, 400, 'invalid_request', { field: 'api_key' })
      const mode = await call('POST', '/credentials/test', body('unsaved', { mode: 'images' }))
      expectError(mode, 400, 'invalid_request', { field: 'mode' })
      expect(await rows()).toEqual(before)
    })

    test('gateway#16 a name that resolves to a private address is told as one, saved or not', async () => {
      const { id } = expectOk(await call('POST', '/credentials', body('inside')), 201)
      const refused = { model: 'refused' }
      const host = { host: 'models.example' }
      expectError(await call('POST', `/credentials/${id}/test`, refused), 422, 'address_refused', host)
      expectError(await call('POST', '/credentials/test', body('new', refused)), 422, 'address_refused', host)
    })

    test('a route is explained for a caller or a key, without private credentials of others', async () => {
      const user = await api().user('explained@example.org')
      const shared = expectOk(await call('POST', '/credentials', body('shared one')), 201)
      const mine = expectOk(
        await call('POST', '/credentials', body('mine', { scope: 'user' }), { token: user.token }),
        201,
      )
      const key = expectOk(await call('POST', '/keys', { name: 'k', user_id: user.id }), 201)
      const ids = ({ candidates }: { candidates: { credential_id: number }[] }) =>
        candidates.map(({ credential_id }) => credential_id)
      const own = expectOk(await call('POST', '/route', { model: 'gpt' }, { token: user.token }))
      expect(own).toMatchObject({ name: 'gpt user ' + user.id })
      expect(ids(own)).toEqual(expect.arrayContaining([shared.id, mine.id]))
      const ofKey = expectOk(await call('POST', '/route', { model: 'gpt', key_id: key.id, surface: 'messages' }))
      expect(ofKey.name).toBe(`gpt user ${user.id}`)
      expect(ids(ofKey)).toContain(shared.id)
      expect(ids(ofKey)).not.toContain(mine.id)
      const organizationKey = expectOk(await call('POST', '/keys', { name: 'o' }), 201)
      expectOk(await call('POST', '/route', { model: 'gpt', key_id: organizationKey.id }))
      const foreign = await call('POST', '/route', { model: 'gpt', key_id: organizationKey.id }, { token: user.token })
      expectError(foreign, 404, 'not_found', { resource: 'key' })
      expectError(await call('POST', '/route', { model: 'none' }), 404, 'model_not_found', { field: 'model' })
      expectError(await call('POST', '/route', {}), 400, 'invalid_request', { field: 'model' })
    })
  },
  () => ({
    testCredential: async (credential, options) => {
      tried.push({ credential, options })
      if (options.model === 'refused') throw new AddressRefusedError('models.example')
      return options.model === 'bad' ? BAD : GOOD
    },
    live: { healthOf: () => live, recover: (id) => void recovered.push(id) },
    explain: ({ state, userId }, name) => {
      if (name === 'none') throw new GatewayError('model_not_found', 'there is no none', { param: 'model' })
      const usable = state.credentials.filter((each) => each.userId === undefined || each.userId === userId)
      const candidates = usable.map(({ id }) => ({
        credential_id: id,
        model: name,
        ring: 2,
        priority: 0,
        share: 0,
        state: 'unknown' as const,
      }))
      return { name: `${name} user ${userId}`, candidates }
    },
  }),
)
