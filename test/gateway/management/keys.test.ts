import { expect, test } from 'vitest'
import { sha256 } from '../../../src/base/hash.ts'
import type { Actor } from '../../../src/gateway/access.ts'
import type { Settings } from '../../../src/gateway/model.ts'
import { settingsRequest } from '../../../src/gateway/requests/settings.ts'
import { SettingsService } from '../../../src/gateway/settings.ts'
import { downgradeSchema, upgradeSchema } from '../../../src/platform/schema.ts'
import { expectError, expectOk } from '../../platform/support.ts'
import { describeGateway, type GatewayApi } from '../support.ts'

describeGateway(
  'virtual keys',
  (api) => {
    const call: GatewayApi['call'] = (...args) => api().call(...args)
    const find = (token: string) => api().management.states.findKey(sha256(token))

    test('are made, shown without their token, changed, deleted', async () => {
      const body = {
        name: 'ci',
        allowed_models: ['gpt-*'],
        budget: { limit_usd: '12.5', window: 'month' },
        limits: { requests_per_minute: 60 },
        max_output_tokens: 1000,
        expires_at: '2099-01-01T00:00:00Z',
      }
      const { token, ...key } = expectOk(await call('POST', '/keys', body), 201)
      expect(token).toMatch(/^mvk_[\w-]{43}$/)
      expect(key).toMatchObject({
        ...body,
        organization_id: 1,
        prefix: token.slice(0, 12),
        last4: token.slice(-4),
        allowed_credentials: [],
        budget: { limit_usd: '12.5', window: 'month', unknown_price: 'deny' },
        expires_at: '2099-01-01T00:00:00.000Z',
        enabled: true,
        spent_usd: '1.25',
        reserved_usd: '0.5',
        created_by: 1,
      })
      expect(expectOk(await call('GET', `/keys/${key.id}`))).toEqual(key)
      expect(find(token)).toMatchObject({ state: { id: 1 }, key: { id: key.id, maxOutputTokens: 1000 } })
      const rows = JSON.stringify(await api().database.all('SELECT * FROM gateway_keys'))
      expect(rows).not.toContain(token)
      expect(rows).toContain(sha256(token))
      const changed = expectOk(await call('PUT', `/keys/${key.id}`, { name: 'ci', enabled: false }))
      expect(changed).toMatchObject({ enabled: false, allowed_models: [], limits: {} })
      expect(changed.budget).toBeUndefined()
      expect(find(token)).toBeUndefined()
      expectOk(await call('PUT', `/keys/${key.id}`, { name: 'ci' }))
      expect(find(token)).toBeDefined()
      expectOk(await call('DELETE', `/keys/${key.id}`), 204)
      expect(find(token)).toBeUndefined()
      expectError(await call('GET', `/keys/${key.id}`), 404, 'not_found')
    })

    test('refuse what breaks a rule', async () => {
      for (const [body, field] of [
        [{}, 'name'],
        [{ name: 'x', budget: { limit_usd: '0.0000000001', window: 'day' } }, 'budget.limit_usd'],
        [{ name: 'x', budget: { limit_usd: '1', window: 'year' } }, 'budget.window'],
        [{ name: 'x', expires_at: 'tomorrow' }, 'expires_at'],
        [{ name: 'x', allowed_models: ['*a'] }, 'allowed_models.0'],
        [{ name: 'x', token: 'mvk_x' }, 'token'],
        [{ name: 'x\u0085' }, 'name'],
        [{ name: 'x', budget: { limit_usd: '1000000000', window: 'day' } }, 'budget.limit_usd'],
      ] as const) {
        expectError(await call('POST', '/keys', body), 400, 'invalid_request', { field })
      }
      expectError(await call('POST', '/keys', { name: 'x', user_id: 999 }), 404, 'not_found', { resource: 'user' })
      const unknown = await call('POST', '/keys', { name: 'x', allowed_credentials: [999] })
      expectError(unknown, 404, 'not_found', { resource: 'credential' })
    })

    test('end when their time has come', async () => {
      const expires_at = new Date(Date.now() + 3_600_000).toISOString()
      const { token } = expectOk(await call('POST', '/keys', { name: 'short', expires_at }), 201)
      expect(find(token)).toBeDefined()
      api().advance(3_600_000)
      expect(find(token)).toBeUndefined()
    })

    test('gateway#6 a rotated key works through its grace; a rotation without grace ends the older token', async () => {
      const { id, token: first } = expectOk(await call('POST', '/keys', { name: 'rotating' }), 201)
      const { token: second } = expectOk(await call('POST', `/keys/${id}/rotate`, { grace_seconds: 60 }))
      expect([find(first)?.key.id, find(second)?.key.id]).toEqual([id, id])
      api().advance(59_000)
      expect(find(first)).toBeDefined()
      api().advance(1000)
      expect(find(first)).toBeUndefined()
      expect(find(second)).toBeDefined()
      const { token: third } = expectOk(await call('POST', `/keys/${id}/rotate`))
      expect([find(second), find(third)?.key.id]).toEqual([undefined, id])
      const bad = await call('POST', `/keys/${id}/rotate`, { grace_seconds: 86_401 })
      expectError(bad, 400, 'invalid_request', { field: 'grace_seconds' })
    })

    test('gateway#6 rotated again within its grace, a key works with each token; no grace outlasts a later one', async () => {
      const { id, token: first } = expectOk(await call('POST', '/keys', { name: 'again' }), 201)
      const rotate = async (grace_seconds: number): Promise<string> =>
        expectOk(await call('POST', `/keys/${id}/rotate`, { grace_seconds })).token
      const tokens = [first, await rotate(60), await rotate(600), await rotate(100)]
      const good = () => tokens.map((token) => find(token) !== undefined)
      expect(good()).toEqual([true, true, true, true])
      api().advance(60_000)
      expect(good()).toEqual([false, true, true, true])
      api().advance(40_000)
      expect(good()).toEqual([false, false, false, true])
      tokens.push(await rotate(60), await rotate(0))
      expect(good()).toEqual([false, false, false, false, false, true])
      for (let i = 0; i < 25; i++) tokens.push(await rotate(60))
      expect(good().filter(Boolean)).toHaveLength(21)
      expect(find(tokens.at(-1) ?? '')).toBeDefined()
    })

    test('gateway#6 gateway#112 the schema before and back keeps the token, and the newest older one', async () => {
      const { database, management } = api()
      const { id, token: first } = expectOk(await call('POST', '/keys', { name: 'migrated' }), 201)
      const { token: second } = expectOk(await call('POST', `/keys/${id}/rotate`, { grace_seconds: 60 }))
      const { token: third } = expectOk(await call('POST', `/keys/${id}/rotate`, { grace_seconds: 60 }))
      expect(await downgradeSchema(database, 20261022020000)).toEqual([20261022030000])
      expect(await database.get('SELECT previous_hash FROM gateway_keys WHERE id = $1', [id])).toEqual({
        previous_hash: sha256(second),
      })
      await upgradeSchema(database, 1)
      await management.states.reload(1)
      expect([first, second, third].map((token) => find(token)?.key.id)).toEqual([undefined, id, id])
      api().advance(60_000)
      expect([find(second), find(third)?.key.id]).toEqual([undefined, id])
    })

    test('gateway#6 with their user, keys and private credentials die at once; an organization key lives', async () => {
      const user = await api().user('leaving@example.org')
      const own = { token: user.token }
      const mine = { provider: 'openai', name: 'mine', api_key: 'sk-0123456789abcdef', scope: 'user' }
      const credential = expectOk(await call('POST', '/credentials', mine, own), 201)
      const key = expectOk(await call('POST', '/keys', { name: 'theirs', user_id: user.id }), 201)
      const shared = expectOk(await call('POST', '/keys', { name: 'shared' }), 201)
      const isHeld = () =>
        api()
          .management.states.get(1)
          ?.credentials.some(({ id }) => id === credential.id)
      expect([find(key.token)?.key.userId, isHeld()]).toEqual([user.id, true])
      const path = `//rest/v1/platform/users/${user.id}`
      expectOk(await call('PATCH', path, { active: false }))
      expect([find(key.token), isHeld(), find(shared.token)?.key.id]).toEqual([undefined, false, shared.id])
      expectError(await call('GET', '/credentials', undefined, own), 401, 'unauthorized')
      expectOk(await call('PATCH', path, { active: true, role: 'admin' }))
      expect([find(key.token)?.key.id, isHeld()]).toEqual([key.id, true])
      expect(api().management.states.get(1)?.users.get(user.id)).toEqual({ role: 'admin' })
    })

    test('members keep their own where the settings let them', async () => {
      const user = await api().user('keeper@example.org')
      const own = { token: user.token }
      const given = expectOk(await call('POST', '/keys', { name: 'given', user_id: user.id }), 201)
      const shared = expectOk(await call('POST', '/keys', { name: 'of all' }), 201)
      expect(expectOk(await call('GET', '/keys', undefined, own)).keys).toMatchObject([{ id: given.id }])
      expectError(await call('GET', `/keys/${shared.id}`, undefined, own), 404, 'not_found')
      expectError(await call('DELETE', `/keys/${shared.id}`, undefined, own), 404, 'not_found')
      expectError(await call('POST', '/keys', { name: 'x' }, own), 403, 'forbidden', { setting: 'member_keys' })
      expectError(await call('PUT', `/keys/${given.id}`, { name: 'x' }, own), 403, 'forbidden')
      expectOk(await call('POST', `/keys/${given.id}/rotate`, {}, own))
      expectOk(await call('PUT', '/settings', { member_keys: true }))
      const made = expectOk(await call('POST', '/keys', { name: 'made' }, own), 201)
      expect(made).toMatchObject({ user_id: user.id, created_by: user.id })
      expectError(await call('POST', '/keys', { name: 'x', user_id: 1 }, own), 404, 'not_found', { resource: 'user' })
      expectOk(await call('PUT', `/keys/${made.id}`, { name: 'renamed' }, own))
      const moved = await call('PUT', `/keys/${made.id}`, { name: 'renamed', user_id: 1 })
      expectError(moved, 400, 'invalid_request', { field: 'user_id' })
      expectOk(await call('DELETE', `/keys/${made.id}`, undefined, own), 204)
      expectOk(await call('PUT', '/settings', {}))
    })

    test('gateway#86 cost tracking stays on while a budget exists, and a budget needs it', async () => {
      const budget = { limit_usd: '1', window: 'day' }
      const { id } = expectOk(await call('POST', '/keys', { name: 'with budget', budget }), 201)
      const refused = { reason: 'budgets_exist' }
      expectError(await call('PUT', '/settings', { cost_tracking: false }), 409, 'conflict', refused)
      expectOk(await call('DELETE', `/keys/${id}`), 204)
      expectError(
        await call('PUT', '/settings', { cost_tracking: false, user_budget: budget }),
        409,
        'conflict',
        refused,
      )
      expectOk(await call('PUT', '/settings', { cost_tracking: false }))
      expect(api().management.states.get(1)?.settings.cost_tracking).toBe(false)
      const late = await call('POST', '/keys', { name: 'with budget', budget })
      expectError(late, 409, 'conflict', { reason: 'cost_disabled' })
      const later = await call('PUT', '/settings', { cost_tracking: false, budget })
      expectError(later, 409, 'conflict', { reason: 'cost_disabled' })
      expectOk(await call('PUT', '/settings', {}))
    })

    test('settings have defaults, are replaced as a whole, and keep their bounds', async () => {
      const defaults = {
        cost_tracking: true,
        budget: null,
        user_budget: null,
        content_logging: false,
        content_retention_days: 7,
        blocked_models: [],
        max_request_bytes: null,
        usage_retention_days: 90,
        private_credentials: true,
        member_keys: false,
        cache_scope: 'caller',
      }
      expect(expectOk(await call('GET', '/settings'))).toEqual(defaults)
      const changed = { blocked_models: ['gpt-4*'], content_logging: true, budget: { limit_usd: '5', window: 'total' } }
      const saved = { ...defaults, ...changed, budget: { ...changed.budget, unknown_price: 'deny' } }
      expect(expectOk(await call('PUT', '/settings', changed))).toEqual(saved)
      expect(expectOk(await call('GET', '/settings'))).toEqual(saved)
      expect(api().management.states.get(1)?.settings).toEqual(saved)
      for (const [body, field] of [
        [{ content_retention_days: 91 }, 'content_retention_days'],
        [{ usage_retention_days: 0 }, 'usage_retention_days'],
        [{ cache_scope: 'all' }, 'cache_scope'],
        [{ unknown: 1 }, 'unknown'],
      ] as const) {
        expectError(await call('PUT', '/settings', body), 400, 'invalid_request', { field })
      }
      expect(expectOk(await call('PUT', '/settings', {}))).toEqual(defaults)
    })

    test('a model that is named twice is stored once', async () => {
      const twice = ['gpt-4*', 'o1', 'gpt-4*']
      const { blocked_models: blocked } = expectOk(await call('PUT', '/settings', { blocked_models: twice }))
      expect(blocked).toEqual(['gpt-4*', 'o1'])
      const { allowed_models: allowed } = expectOk(
        await call('POST', '/keys', { name: 'x', allowed_models: twice }),
        201,
      )
      expect(allowed).toEqual(['gpt-4*', 'o1'])
      expectOk(await call('PUT', '/settings', {}))
    })

    test('an organization may lower what the server takes of a body, not raise it', async () => {
      const { database, management } = api()
      const actor: Actor = {
        user: expectOk(await call('GET', '//rest/v1/platform/me')).user,
        tokenHash: '',
        requestId: 'r',
        address: '127.0.0.1',
        userAgent: undefined,
      }
      const { states, audit } = management
      const save = (maxRequestBytes: number, max_request_bytes: number, more: Partial<Settings> = {}) =>
        new SettingsService({ database, states, audit, maxRequestBytes }).replace(actor, {
          ...settingsRequest.parse({}),
          ...more,
          max_request_bytes,
        })
      await expect(save(1000, 1001)).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining('gateway.max_request_bytes, 1000'),
        details: { field: 'max_request_bytes' },
      })
      expect(await save(1000, 1000)).toMatchObject({ max_request_bytes: 1000 })
      // What was saved before the server took less keeps no other change back.
      expect(await save(500, 1000, { member_keys: true })).toMatchObject({ member_keys: true })
      expectOk(await call('PUT', '/settings', {}))
    })

    test('the metrics token: one each, shown once, the old one ends', async () => {
      const { states, metricsTokens } = api().management
      const first = expectOk(await call('POST', '/metrics-token'), 201)
      expect(first.token).toMatch(/^mmt_[\w-]{43}$/)
      expect(states.byMetricsToken(sha256(first.token))?.id).toBe(1)
      const second = expectOk(await call('POST', '/metrics-token'), 201)
      expect(states.byMetricsToken(sha256(first.token))).toBeUndefined()
      await metricsTokens.used(1)
      const { created_at } = second
      const shown = { exists: true, last4: second.token.slice(-4), created_at, last_used_at: expect.any(String) }
      expect(expectOk(await call('GET', '/metrics-token'))).toEqual(shown)
      expectOk(await call('DELETE', '/metrics-token'), 204)
      expect(states.byMetricsToken(sha256(second.token))).toBeUndefined()
      expect(expectOk(await call('GET', '/metrics-token'))).toEqual({ exists: false })
    })
  },
  () => ({
    spentOf: async (_, ids) => new Map(ids.map((id) => [id, { spent_usd: '1.25', reserved_usd: '0.5' }])),
  }),
)
