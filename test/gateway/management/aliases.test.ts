import { expect, test } from 'vitest'
import { expectError, expectOk } from '../../platform/support.ts'
import { describeGateway, type GatewayApi } from '../support.ts'

describeGateway('aliases', (api) => {
  const call: GatewayApi['call'] = (...args) => api().call(...args)
  const credential = async (name: string, fields: object = {}, token = api().admin): Promise<number> => {
    const body = { provider: 'openai', name, api_key: 'sk-0123456789abcdef', ...fields }
    return expectOk(await call('POST', '/credentials', body, { token }), 201).id
  }

  test('are made, read, listed, replaced, deleted', async () => {
    const id = await credential('one')
    const body = {
      name: 'team/fast',
      strategy: 'ordered',
      members: [{ credential_id: id, model: 'gpt', weight: 0.5, priority: 2 }, { credential_id: id }],
      fallback_models: ['gpt-4'],
      cache_ttl: 60,
      max_output_tokens: 100,
    }
    const alias = expectOk(await call('POST', '/model-groups', body), 201)
    expect(alias).toEqual({
      ...body,
      id: alias.id,
      organization_id: 1,
      scope: 'organization',
      fallback_on: ['connect', 'transient', 'rate', 'auth', 'missing'],
      enabled: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect(expectOk(await call('GET', `/model-groups/${alias.id}`))).toEqual(alias)
    expect(expectOk(await call('GET', '/model-groups'))).toEqual({ model_groups: [alias], next_after_id: '' })
    expect(api().management.states.get(1)?.aliases).toEqual([alias])
    const less = { name: 'team/fast', members: [{ credential_id: id }], fallback_on: ['context'], enabled: false }
    const changed = expectOk(await call('PUT', `/model-groups/${alias.id}`, less))
    expect(changed).toMatchObject({ ...less, strategy: 'weighted', fallback_models: [] })
    expect(changed.cache_ttl).toBeUndefined()
    expectOk(await call('DELETE', `/model-groups/${alias.id}`), 204)
    expect(api().management.states.get(1)?.aliases).toEqual([])
  })

  test('refuse what breaks a rule', async () => {
    const id = await credential('two')
    const members = [{ credential_id: id }]
    for (const [fields, field] of [
      [{ name: '' }, 'name'],
      [{ name: 'n'.repeat(129) }, 'name'],
      [{ members: [] }, 'members'],
      [{ members: Array.from({ length: 51 }, () => ({ credential_id: id })) }, 'members'],
      [{ members: [{}] }, 'members.0.credential_id'],
      [{ members: [{ credential_id: id, weight: 1001 }] }, 'members.0.weight'],
      [{ fallback_models: ['1', '2', '3', '4', '5', '6'] }, 'fallback_models'],
      [{ fallback_on: ['client'] }, 'fallback_on.0'],
      [{ cache_ttl: 86_401 }, 'cache_ttl'],
      [{ strategy: 'random' }, 'strategy'],
    ] as const) {
      const reply = await call('POST', '/model-groups', { name: 'x', members, ...fields })
      expectError(reply, 400, 'invalid_request', { field })
    }
    const unknown = await call('POST', '/model-groups', { name: 'x', members: [{ credential_id: 999 }] })
    expectError(unknown, 404, 'not_found', { resource: 'credential' })
    expectOk(await call('POST', '/model-groups', { name: 'taken', members }), 201)
    expectError(await call('POST', '/model-groups', { name: 'taken', members }), 409, 'conflict', { reason: 'name' })
  })

  test('gateway#27 a cycle of fallback names is 422, also over a private one', async () => {
    const id = await credential('three')
    const members = [{ credential_id: id }]
    const make = (name: string, fallback: string[], fields: object = {}, token = api().admin) =>
      call('POST', '/model-groups', { name, members, fallback_models: fallback, ...fields }, { token })
    expectError(await make('self', ['self']), 422, 'invalid_alias', { reason: 'cycle', cycle: ['self', 'self'] })
    const a = expectOk(await make('a', ['b', 'elsewhere']), 201)
    expectOk(await make('b', ['c']), 201)
    expectError(await make('c', ['d', 'a']), 422, 'invalid_alias', { reason: 'cycle', cycle: ['c', 'a', 'b', 'c'] })
    expectOk(await make('c', ['d']), 201)
    const renamed = { name: 'd', members, fallback_models: ['b'] }
    expectError(await call('PUT', `/model-groups/${a.id}`, renamed), 422, 'invalid_alias', { reason: 'cycle' })
    const { token } = await api().user('cycles@example.org')
    expectError(await make('c', ['a'], { scope: 'user' }, token), 422, 'invalid_alias', { reason: 'cycle' })
    expectOk(await make('a', ['b'], { scope: 'user' }, token), 201)
  })

  test('gateway#27 a private alias may have the name of a shared one; a shared one has no private member', async () => {
    const user = await api().user('hiding@example.org')
    const shared = await credential('four')
    const mine = await credential('mine', { scope: 'user' }, user.token)
    const own = { token: user.token }
    expectOk(await call('POST', '/model-groups', { name: 'both', members: [{ credential_id: shared }] }), 201)
    const members = [{ credential_id: mine }, { credential_id: shared }]
    const alias = expectOk(await call('POST', '/model-groups', { name: 'both', scope: 'user', members }, own), 201)
    expect(alias).toMatchObject({ scope: 'user', user_id: user.id })
    expectError(await call('GET', `/model-groups/${alias.id}`), 404, 'not_found')
    const names = expectOk(await call('GET', '/model-groups', undefined, own)).model_groups.map(
      ({ name }: { name: string }) => name,
    )
    expect(names.filter((name: string) => name === 'both')).toHaveLength(2)
    const adminsOwn = await credential('private of the admin', { scope: 'user' })
    const reply = await call('POST', '/model-groups', { name: 'x', members: [{ credential_id: adminsOwn }] })
    expectError(reply, 422, 'invalid_alias', { reason: 'private_member', credential_id: adminsOwn })
  })
})
