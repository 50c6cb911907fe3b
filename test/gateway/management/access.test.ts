import { expect, test } from 'vitest'
import { expectError, expectOk } from '../../platform/support.ts'
import { describeGateway, type GatewayApi } from '../support.ts'

const credential = (name: string, fields: object = {}): object => ({
  provider: 'openai',
  name,
  api_key: 'sk-test-0123456789abcdef',
  ...fields,
})

/** Every management route; `:id` stands for a record. */
const ROUTES: [method: string, path: string][] = [
  ['GET', '/credentials'],
  ['POST', '/credentials'],
  ['POST', '/credentials/test'],
  ['GET', '/credentials/1'],
  ['PUT', '/credentials/1'],
  ['DELETE', '/credentials/1'],
  ['POST', '/credentials/1/enable'],
  ['POST', '/credentials/1/disable'],
  ['POST', '/credentials/1/test'],
  ['GET', '/model-groups'],
  ['POST', '/model-groups'],
  ['GET', '/model-groups/1'],
  ['PUT', '/model-groups/1'],
  ['DELETE', '/model-groups/1'],
  ['GET', '/keys'],
  ['POST', '/keys'],
  ['GET', '/keys/1'],
  ['PUT', '/keys/1'],
  ['POST', '/keys/1/rotate'],
  ['DELETE', '/keys/1'],
  ['GET', '/settings'],
  ['PUT', '/settings'],
  ['GET', '/audit'],
  ['GET', '/audit/export'],
  ['GET', '/audit/verify'],
  ['GET', '/metrics-token'],
  ['POST', '/metrics-token'],
  ['DELETE', '/metrics-token'],
  ['POST', '/route'],
]

describeGateway('access to the management', (api) => {
  const call: GatewayApi['call'] = (...args) => api().call(...args)

  test('without a session every route is 401', async () => {
    for (const [method, path] of ROUTES) {
      expectError(await call(method, path, undefined, { token: null }), 401, 'unauthorized')
    }
    expectError(await call('GET', '/keys/self', undefined, { token: null }), 401, 'unauthorized')
    expectError(await call('GET', '/keys/self'), 401, 'unauthorized')
  })

  test('gateway#4 a write by cookie from a foreign origin is 403; bearer works', async () => {
    const cookie = { Cookie: `session=${api().admin}` }
    const foreign = { token: null, headers: { ...cookie, Origin: 'https://evil.example.com' } }
    expectError(await call('POST', '/credentials', credential('foreign'), foreign), 403, 'forbidden', {
      header: 'Origin',
    })
    expectError(await call('DELETE', '/metrics-token', undefined, foreign), 403, 'forbidden', { header: 'Origin' })
    const own = { token: null, headers: { ...cookie, Origin: api().url } }
    expectOk(await call('POST', '/credentials', credential('by cookie'), own), 201)
    const bearer = { headers: { Origin: 'https://evil.example.com' } }
    expectOk(await call('POST', '/credentials', credential('by bearer'), bearer), 201)
  })

  test('gateway#5 a virtual key on management is 403, keys/self 200; a metrics token is 401', async () => {
    const { token, ...key } = expectOk(await call('POST', '/keys', { name: 'machine' }), 201)
    for (const [method, path] of ROUTES) expectError(await call(method, path, undefined, { token }), 403, 'forbidden')
    expectError(await call('GET', '//rest/v1/platform/me', undefined, { token }), 403, 'forbidden')
    expect(expectOk(await call('GET', '/keys/self', undefined, { token }))).toEqual(key)
    const header = { token: null, headers: { 'x-mem-api-key': token } }
    expect(expectOk(await call('GET', '/keys/self', undefined, header))).toEqual(key)
    const metrics = expectOk(await call('POST', '/metrics-token'), 201)
    for (const path of ['/keys/self', '/credentials', '/metrics-token']) {
      expectError(await call('GET', path, undefined, { token: metrics.token }), 401, 'unauthorized')
    }
    expectOk(await call('DELETE', `/keys/${key.id}`), 204)
    expectError(await call('GET', '/keys/self', undefined, { token }), 401, 'unauthorized')
    expectError(await call('GET', '/credentials', undefined, { token }), 401, 'unauthorized')
  })

  test('gateway#7 nothing of one organization is there for another', async () => {
    const bo = { token: await api().login('bo@example.net') }
    const shared = expectOk(await call('POST', '/credentials', credential('of A')), 201)
    const alias = expectOk(
      await call('POST', '/model-groups', { name: 'of-a', members: [{ credential_id: shared.id }] }),
      201,
    )
    const key = expectOk(await call('POST', '/keys', { name: 'of A' }), 201)
    expectOk(await call('PUT', '/settings', { member_keys: true }))
    expect(expectOk(await call('GET', '/credentials', undefined, bo)).credentials).toEqual([])
    expect(expectOk(await call('GET', '/model-groups', undefined, bo)).model_groups).toEqual([])
    expect(expectOk(await call('GET', '/keys', undefined, bo)).keys).toEqual([])
    expect(expectOk(await call('GET', '/audit', undefined, bo)).audit).toEqual([])
    expect(expectOk(await call('GET', '/settings', undefined, bo))).toMatchObject({ member_keys: false })
    expect(expectOk(await call('GET', '/metrics-token', undefined, bo))).toEqual({ exists: false })
    for (const [method, path, body] of [
      ['GET', `/credentials/${shared.id}`],
      ['PUT', `/credentials/${shared.id}`, credential('stolen')],
      ['DELETE', `/credentials/${shared.id}`],
      ['POST', `/credentials/${shared.id}/disable`],
      ['POST', `/credentials/${shared.id}/test`, {}],
      ['GET', `/model-groups/${alias.id}`],
      ['DELETE', `/model-groups/${alias.id}`],
      ['GET', `/keys/${key.id}`],
      ['POST', `/keys/${key.id}/rotate`, {}],
      ['DELETE', `/keys/${key.id}`],
      ['POST', '/model-groups', { name: 'x', members: [{ credential_id: shared.id }] }],
      ['POST', '/keys', { name: 'x', allowed_credentials: [shared.id] }],
      ['POST', '/keys', { name: 'x', user_id: 1 }],
      ['POST', '/route', { model: 'x', key_id: key.id }],
    ] as const) {
      expectError(await call(method, path, body, bo), 404, 'not_found')
    }
    expect(api().management.states.get(2)?.credentials).toEqual([])
    expectOk(await call('PUT', '/settings', {}))
  })

  test('gateway#8 a private credential is there for its user alone, and in the state under its user', async () => {
    const user = await api().user('private@example.org')
    const own = { token: user.token }
    const made = expectOk(await call('POST', '/credentials', credential('mine', { scope: 'user' }), own), 201)
    expect(made).toMatchObject({ scope: 'user', user_id: user.id, config: {}, custom_headers: {} })
    expect(expectOk(await call('GET', `/credentials/${made.id}`, undefined, own))).toEqual(made)
    const { credentials } = expectOk(await call('GET', '/credentials?scope=user', undefined, own))
    expect(credentials).toEqual([made])
    const names = expectOk(await call('GET', '/credentials?limit=200')).credentials.map(
      ({ name }: { name: string }) => name,
    )
    expect(names).not.toContain('mine')
    for (const [method, path, body] of [
      ['GET', `/credentials/${made.id}`],
      ['PUT', `/credentials/${made.id}`, credential('taken')],
      ['DELETE', `/credentials/${made.id}`],
      ['POST', `/credentials/${made.id}/test`, {}],
      ['POST', '/model-groups', { name: 'y', members: [{ credential_id: made.id }] }],
      ['POST', '/keys', { name: 'y', allowed_credentials: [made.id], user_id: user.id }],
    ] as const) {
      expectError(await call(method, path, body), 404, 'not_found')
    }
    const { states } = api().management
    const held = () => states.get(1)?.credentials.find(({ id }) => id === made.id)
    expect(held()).toMatchObject({ userId: user.id })
    // Not even its name is taken.
    expectOk(await call('POST', '/credentials', credential('mine')), 201)
    expectOk(await call('PUT', '/settings', { private_credentials: false }))
    expect(held()).toBeUndefined()
    const refused = await call('POST', '/credentials', credential('another', { scope: 'user' }), own)
    expectError(refused, 403, 'forbidden', { setting: 'private_credentials' })
    expectError(await call('POST', `/credentials/${made.id}/test`, {}, own), 403, 'forbidden')
    expectOk(await call('PUT', '/settings', {}))
    expect(held()).toMatchObject({ secrets: { api_key: 'sk-test-0123456789abcdef' } })
  })

  test('gateway#8 what uses it of others is not told apart when it is deleted', async () => {
    const user = await api().user('aliases@example.org')
    const shared = expectOk(await call('POST', '/credentials', credential('used in private')), 201)
    const body = { name: 'hidden', scope: 'user', members: [{ credential_id: shared.id }] }
    expectOk(await call('POST', '/model-groups', body, { token: user.token }), 201)
    const reply = await call('DELETE', `/credentials/${shared.id}`)
    expectError(reply, 409, 'conflict', { reason: 'in_use', aliases: [] })
    expect(JSON.stringify(reply.body)).not.toContain('hidden')
  })

  test('gateway#9 a member makes nothing shared, reads no audit, sees shared credentials without their ways', async () => {
    const { token } = await api().user('member@example.org')
    const member = { token }
    const fields = {
      base_url: 'https://shared.example.org/v1',
      config: { project: 'p' },
      custom_headers: { 'X-A': 'b' },
    }
    const shared = expectOk(await call('POST', '/credentials', credential('shared', fields)), 201)
    const { credentials } = expectOk(await call('GET', '/credentials?limit=200', undefined, member))
    const seen = credentials.find(({ id }: { id: number }) => id === shared.id)
    const { base_url: _, config: __, custom_headers: ___, ...rest } = shared
    expect(seen).toEqual(rest)
    const members = [{ credential_id: shared.id }]
    const group = expectOk(await call('POST', '/model-groups', { name: 'fast', members }), 201)
    expectOk(await call('GET', `/model-groups/${group.id}`, undefined, member))
    expectOk(await call('GET', '/settings', undefined, member))
    for (const [method, path, body] of [
      ['POST', '/credentials', credential('not mine')],
      ['POST', '/credentials/test', credential('not mine')],
      ['GET', `/credentials/${shared.id}`],
      ['PUT', `/credentials/${shared.id}`, credential('not mine')],
      ['DELETE', `/credentials/${shared.id}`],
      ['POST', `/credentials/${shared.id}/enable`],
      ['POST', `/credentials/${shared.id}/test`, {}],
      ['POST', '/model-groups', { name: 'z', members }],
      ['PUT', `/model-groups/${group.id}`, { name: 'z', members }],
      ['DELETE', `/model-groups/${group.id}`],
      ['POST', '/keys', { name: 'z' }],
      ['PUT', '/settings', {}],
      ['GET', '/audit'],
      ['GET', '/audit/export'],
      ['GET', '/audit/verify'],
      ['GET', '/metrics-token'],
      ['POST', '/metrics-token'],
    ] as const) {
      expectError(await call(method, path, body, member), 403, 'forbidden')
    }
    expectOk(await call('POST', '/credentials/test', credential('mine', { scope: 'user' }), member))
  })

  test('whether a record is there and who may change it is told before what is wrong with the body', async () => {
    const { token } = await api().user('hasty@example.org')
    const shared = expectOk(await call('POST', '/credentials', credential('orderly')), 201)
    const members = [{ credential_id: shared.id }]
    const group = expectOk(await call('POST', '/model-groups', { name: 'orderly', members }), 201)
    const key = expectOk(await call('POST', '/keys', { name: 'orderly' }), 201)
    const wrong = { wrong: true }
    for (const [method, path] of [
      ['PUT', `/credentials/${shared.id}`],
      ['POST', `/credentials/${shared.id}/test`],
      ['PUT', `/model-groups/${group.id}`],
      ['POST', '/keys'],
    ] as const) {
      expectError(await call(method, path, wrong, { token }), 403, 'forbidden')
      expect((await call(method, path, wrong)).status).toBe(400)
    }
    for (const path of [`/keys/${key.id}`, '/credentials/9999', '/model-groups/9999']) {
      expectError(await call('PUT', path, wrong, { token }), 404, 'not_found')
    }
    expectError(await call('POST', `/keys/${key.id}/rotate`, wrong, { token }), 404, 'not_found')
  })

  test('U+0000 in a query is 400 that names the parameter', async () => {
    for (const name of ['action', 'target_type', 'target_id']) {
      expectError(await call('GET', `/audit?${name}=a%00b`), 400, 'invalid_request', { field: name })
    }
  })
})
