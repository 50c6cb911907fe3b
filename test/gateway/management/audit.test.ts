import { expect, test } from 'vitest'
import type { AuditRecord } from '../../../src/gateway/audit-chain.ts'
import { expectError, expectOk } from '../../platform/support.ts'
import { describeGateway, type GatewayApi } from '../support.ts'

describeGateway('the audit', (api) => {
  const call: GatewayApi['call'] = (...args) => api().call(...args)
  const records = async (query = ''): Promise<AuditRecord[]> =>
    expectOk(await call('GET', `/audit?limit=200${query}`)).audit

  test('gateway#101 each act leaves one record with who, what and how it differs, without secrets', async () => {
    const key = { provider: 'openai', name: 'audited', api_key: 'sk-planted-0123456789abcdef' }
    const headers = { 'User-Agent': 'test/1.0', 'X-Request-ID': 'the-request' }
    const { id } = expectOk(await call('POST', '/credentials', key, { headers }), 201)
    const changed = { ...key, api_key: 'sk-planted-9876543210abcdef', weight: 2, custom_headers: { 'X-A': 'planted' } }
    expectOk(await call('PUT', `/credentials/${id}`, changed))
    expectOk(await call('POST', `/credentials/${id}/disable`))
    expectOk(await call('POST', `/credentials/${id}/enable`))
    expectOk(await call('POST', `/credentials/${id}/test`, {}))
    const members = [{ credential_id: id }]
    const alias = expectOk(await call('POST', '/model-groups', { name: 'g', members }), 201)
    expectOk(await call('PUT', `/model-groups/${alias.id}`, { name: 'g', members, enabled: false }))
    expectOk(await call('DELETE', `/model-groups/${alias.id}`), 204)
    const made = expectOk(await call('POST', '/keys', { name: 'k' }), 201)
    expectOk(await call('PUT', `/keys/${made.id}`, { name: 'k2' }))
    const { token } = expectOk(await call('POST', `/keys/${made.id}/rotate`, { grace_seconds: 5 }))
    expectOk(await call('DELETE', `/keys/${made.id}`), 204)
    expectOk(await call('PUT', '/settings', { blocked_models: ['gpt-4'] }))
    const metrics = expectOk(await call('POST', '/metrics-token'), 201)
    expectOk(await call('DELETE', '/metrics-token'), 204)
    expectOk(await call('DELETE', `/credentials/${id}`), 204)
    // Neither reading nor what was refused is an act.
    expectError(await call('DELETE', `/credentials/${id}`), 404, 'not_found')
    expectError(await call('PUT', '/settings', { cache_scope: 'x' }), 400, 'invalid_request')

    const all = await records()
    expect(all.map(({ action }) => action)).toEqual([
      'credential.create',
      'credential.update',
      'credential.disable',
      'credential.enable',
      'credential.test',
      'alias.create',
      'alias.update',
      'alias.delete',
      'key.create',
      'key.update',
      'key.rotate',
      'key.delete',
      'settings.update',
      'metrics_token.create',
      'metrics_token.revoke',
      'credential.delete',
    ])
    expect(all.map(({ seq }) => seq)).toEqual(all.map((_, i) => i + 1))
    const [create, update, disable] = all
    expect(create).toEqual({
      id: expect.any(Number),
      organization_id: 1,
      seq: 1,
      prev_hash: '0'.repeat(64),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      at: expect.any(String),
      actor: { type: 'user', id: 1 },
      action: 'credential.create',
      target: { type: 'credential', id: String(id), name: 'audited' },
      changes: expect.objectContaining({ provider: [null, 'openai'], weight: [null, 1], api_key: [null, '***'] }),
      request_id: 'the-request',
      ip: '127.0.0.1',
      user_agent: 'test/1.0',
      count: 1,
    })
    expect(update).toMatchObject({ prev_hash: create?.hash })
    expect(update?.changes).toEqual({
      weight: [1, 2],
      custom_headers: [[], ['X-A']],
      api_key: ['***', '***'],
      'custom_headers.x-a': [null, '***'],
    })
    expect(disable?.changes).toEqual({ enabled: [true, false] })
    const text = JSON.stringify(all)
    for (const secret of ['planted', made.token, token, metrics.token]) expect(text).not.toContain(secret)
    const exported: string = expectOk(await call('GET', '/audit/export'))
    expect(
      exported
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(all)
  })

  test('what looks like a credential is left out of it, wherever it was typed', async () => {
    const token = `mvk_${'x'.repeat(43)}`
    const body = { provider: 'openai', name: 'pasted', api_key: 'k-0123456789', model_mapping: { gpt: token } }
    const { id } = expectOk(
      await call('POST', '/credentials', body, { headers: { 'User-Agent': token, 'X-Request-ID': `call ${token}` } }),
      201,
    )
    const text: string = expectOk(await call('GET', '/audit/export'))
    expect(text).not.toContain(token)
    expect(text).toContain('mvk_[REDACTED]')
    expectOk(await call('DELETE', `/credentials/${id}`), 204)
  })

  test('is filtered, paged, and read from either end', async () => {
    const all = await records()
    expect(await records('&action=key.rotate')).toEqual(all.filter(({ action }) => action === 'key.rotate'))
    expect(await records('&target_type=alias')).toHaveLength(3)
    expect(await records('&target_type=credential&target_id=1')).toHaveLength(6)
    expect(await records('&actor_id=1')).toHaveLength(all.length)
    expect(await records('&actor_id=2')).toEqual([])
    expect(await records(`&from=${encodeURIComponent(String(all[0]?.at))}`)).toHaveLength(all.length)
    expect(await records(`&to=${encodeURIComponent(String(all[0]?.at))}`)).toEqual([])
    expect(await records('&order=desc')).toEqual(all.toReversed())
    const page = expectOk(await call('GET', '/audit?limit=10'))
    expect(page.audit).toEqual(all.slice(0, 10))
    const rest = expectOk(await call('GET', `/audit?limit=10&after_id=${page.next_after_id}`))
    expect(rest).toEqual({ audit: all.slice(10), next_after_id: '' })
    const back = expectOk(await call('GET', `/audit?limit=2&order=desc&after_id=${page.next_after_id}`))
    expect(back.audit.map(({ seq }: AuditRecord) => seq)).toEqual([9, 8])
    for (const query of ['from=yesterday', 'actor_id=x', 'order=up', 'limit=0']) {
      expectError(await call('GET', `/audit?${query}`), 400, 'invalid_request', { field: query.split('=')[0] })
    }
  })

  test('what the system does is one record for each minute, action and target, from all processes', async () => {
    const { audit } = api().management
    const before = (await records()).length
    audit.system(1, 'credential.rejected', { type: 'credential', id: 7, name: 'seven' })
    for (let i = 0; i < 4; i++) {
      audit.system(1, 'fallback.used', { type: 'credential', id: 7, name: 'seven' })
      await audit.flush()
    }
    expect(await records()).toHaveLength(before)
    api().advance(64_000)
    await Promise.all([audit.flush(), audit.flush()])
    const written = (await records()).slice(before)
    expect(written).toHaveLength(2)
    expect(written).toContainEqual(expect.objectContaining({ action: 'credential.rejected', count: 1 }))
    expect(written).toContainEqual(
      expect.objectContaining({
        action: 'fallback.used',
        actor: { type: 'system' },
        target: { type: 'credential', id: '7', name: 'seven' },
        count: 4,
      }),
    )
    await audit.flush()
    expect(await records()).toHaveLength(before + 2)
  })

  test('gateway#101 --verify finds a change, a gap and a missing end', async () => {
    const { database } = api()
    const verify = async () => expectOk(await call('GET', '/audit/verify'))
    const count = (await records()).length
    const head = (await records()).at(-1)?.hash
    expect(await verify()).toEqual({ organization_id: 1, records: count, head, ok: true })
    const change = async (sql: string, back: string, expected: object): Promise<void> => {
      await database.run(sql)
      expect(await verify()).toMatchObject({ ok: false, reason: expect.any(String), ...expected })
      await database.run(back)
      expect(await verify()).toMatchObject({ ok: true })
    }
    const table = 'gateway_audit_records'
    await change(
      `UPDATE ${table} SET ip = '10.0.0.1' WHERE seq = 3`,
      `UPDATE ${table} SET ip = '127.0.0.1' WHERE seq = 3`,
      {
        first_bad_seq: 3,
      },
    )
    await change(`UPDATE ${table} SET seq = 99 WHERE seq = 4`, `UPDATE ${table} SET seq = 4 WHERE seq = 99`, {
      first_bad_seq: 4,
    })
    for (const seq of [0, -1]) {
      await change(
        `INSERT INTO ${table} (organization_id, seq, prev_hash, hash, at, actor_type, action, target_type, target_id, count)
         VALUES (1, ${seq}, 'x', 'x', 0, 'user', 'key.create', 'key', '1', 1)`,
        `DELETE FROM ${table} WHERE seq = ${seq}`,
        { first_bad_seq: seq, records: 0 },
      )
    }
    const [{ changes } = { changes: '' }] = await database.all<{ changes: string }>(
      `SELECT changes FROM ${table} WHERE seq = 3`,
    )
    await change(
      `UPDATE ${table} SET changes = '{"a' WHERE seq = 3`,
      `UPDATE ${table} SET changes = '${changes}' WHERE seq = 3`,
      {
        first_bad_seq: 3,
      },
    )
    await change(
      `UPDATE ${table} SET at = at + 9000000000000000 WHERE seq = 3`,
      `UPDATE ${table} SET at = at - 9000000000000000 WHERE seq = 3`,
      {
        first_bad_seq: 3,
      },
    )
    await change(
      'UPDATE gateway_audit_chains SET organization_id = 2 WHERE organization_id = 1',
      'UPDATE gateway_audit_chains SET organization_id = 1 WHERE organization_id = 2',
      { first_bad_seq: count, reason: 'the head of the chain is missing' },
    )
    await database.run(`DELETE FROM ${table} WHERE seq = ${count}`)
    expect(await verify()).toMatchObject({ ok: false, first_bad_seq: count, records: count - 1 })
  })
})
