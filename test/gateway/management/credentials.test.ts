import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectError, expectOk } from '../../platform/support.ts'
import { describeGateway, type GatewayApi } from '../support.ts'
import { SAMPLES } from './kinds.ts'

let count = 0
const newName = (): string => `credential ${++count}`

const openAi = (fields: object = {}): object => ({
  provider: 'openai',
  name: newName(),
  api_key: 'sk-planted-0123456789abcd',
  ...fields,
})

/** Everything that the database holds, as bytes. */
async function databaseText({ database, place }: GatewayApi): Promise<string> {
  if (place.dialect === 'sqlite') {
    const directory = join(place.directory, 'data')
    const files = readdirSync(directory).filter((file) => file.includes('.db'))
    return files.map((file) => readFileSync(join(directory, file), 'latin1')).join('')
  }
  const tables = await database.all<{ name: string }>(
    `SELECT tablename AS name FROM pg_catalog.pg_tables WHERE schemaname = current_schema()`,
  )
  const rows = await Promise.all(tables.map(({ name }) => database.all(`SELECT * FROM ${name}`)))
  return JSON.stringify(rows)
}

describeGateway('credentials', (api) => {
  const call: GatewayApi['call'] = (...args) => api().call(...args)
  const create = async (fields?: object, token?: string) =>
    expectOk(await call('POST', '/credentials', openAi(fields), token === undefined ? {} : { token }), 201)

  test('gateway#11 every kind: create, read, list, PUT, delete; what is missing is named', async () => {
    for (const { provider, fields, missing, config } of SAMPLES) {
      const name = newName()
      const body = { provider, name, ...fields }
      if (missing !== '') {
        expectError(await call('POST', '/credentials', { provider, name }), 400, 'invalid_request', { field: missing })
      }
      const made = expectOk(await call('POST', '/credentials', body), 201)
      expect(made).toMatchObject({
        provider,
        name,
        version: 1,
        scope: 'organization',
        enabled: true,
        weight: 1,
        priority: 0,
      })
      expect(made).toMatchObject({ organization_id: 1, created_by: 1, health: { state: 'unknown', models: [] } })
      expect(made.config).toEqual(config)
      expect(expectOk(await call('GET', `/credentials/${made.id}`))).toEqual(made)
      const { credentials } = expectOk(await call('GET', `/credentials?provider=${provider}&limit=200`))
      expect(credentials).toContainEqual(made)
      const changed = expectOk(await call('PUT', `/credentials/${made.id}`, { ...body, weight: 0.5, version: 1 }))
      expect(changed).toMatchObject({ id: made.id, version: 2, weight: 0.5 })
      expectOk(await call('DELETE', `/credentials/${made.id}`), 204)
      expectError(await call('GET', `/credentials/${made.id}`), 404, 'not_found', { resource: 'credential' })
    }
  })

  test('gateway#11 fields that break a rule are named', async () => {
    const bad: [object, string][] = [
      [{ provider: 'cohere' }, 'provider'],
      [{ name: '' }, 'name'],
      [{ name: ' blank' }, 'name'],
      [{ name: 'a'.repeat(101) }, 'name'],
      [{ weight: 1000.001 }, 'weight'],
      [{ weight: 0.0001 }, 'weight'],
      [{ weight: -1 }, 'weight'],
      [{ priority: 101 }, 'priority'],
      [{ priority: 1.5 }, 'priority'],
      [{ fallback_group: 'g'.repeat(65) }, 'fallback_group'],
      [{ default_model: 'm'.repeat(201) }, 'default_model'],
      [{ default_model: 'a/../b' }, 'default_model'],
      [{ default_model: 'a\nb' }, 'default_model'],
      [{ allowed_models: ['a*b'] }, 'allowed_models.0'],
      [{ allowed_models: ['**'] }, 'allowed_models.0'],
      [{ limits: { max_concurrency: 0 } }, 'limits.max_concurrency'],
      [{ limits: { bytes: 1 } }, 'limits.bytes'],
      [{ timeouts: { idle_ms: 99 } }, 'timeouts.idle_ms'],
      [{ timeouts: { total_ms: 3_600_001 } }, 'timeouts.total_ms'],
      [{ model_mapping: Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`m${i}`, 'x'])) }, 'model_mapping'],
      [{ health: {} }, 'health'],
      [{ config: { region: 'x' } }, 'config.region'],
      [{ provider: 'bedrock', api_key: undefined, config: { region: 'a.b' } }, 'config.region'],
      [
        { provider: 'bedrock', config: { region: 'a', access_key_id: 'A'.repeat(20), secret_access_key: 's' } },
        'api_key',
      ],
      [{ provider: 'bedrock', config: { region: 'a', api_key: 'x', use_runtime_role: true } }, 'config.access_key_id'],
      [{ provider: 'bedrock', config: { region: 'a', api_key: 'x' } }, 'config.api_key'],
      [{ config: JSON.parse('{"__proto__":{"organization":"x"}}') }, 'config.__proto__'],
      [{ custom_headers: JSON.parse('{"__proto__":"x"}') }, 'custom_headers.__proto__'],
      [{ model_mapping: JSON.parse('{"gpt":"a","__proto__":"x"}') }, 'model_mapping.__proto__'],
      [
        { provider: 'bedrock', api_key: undefined, config: { region: 'a', session_token: 'x' } },
        'config.session_token',
      ],
      [{ provider: 'vertex', api_key: undefined, config: { project: 'p', location: 'l' } }, 'config.service_account'],
      [
        { provider: 'vertex', api_key: undefined, config: { project: 'p', location: 'l', service_account: '{}' } },
        'config.service_account',
      ],
    ]
    for (const [fields, field] of bad) {
      const reply = await call('POST', '/credentials', openAi(fields))
      expect({ fields, ...reply.body.error }).toMatchObject({ code: 'invalid_request', details: { field } })
      expect(reply.status).toBe(400)
    }
    const messages: [object, string][] = [
      [{ model_mapping: { '..': 'm' } }, 'model_mapping... holds a dot segment'],
      [{ config: { region: 'x' } }, 'config.region is not a known field: openai has organization, project'],
      [{ provider: 'groq', config: { region: 'x' } }, 'config.region is not a known field: groq has none'],
      [{ priority: 1e300 }, 'priority must be 0 to 100'],
      [{ version: 1e300 }, 'version must be between -9007199254740991 and 9007199254740991'],
    ]
    for (const [fields, message] of messages) {
      const reply = await call('POST', '/credentials', openAi(fields))
      expect(reply.body.error.message).toBe(message)
    }
  })

  test('gateway#12 no secret in an answer, the audit or the database; has_* and the last four are right', async () => {
    const planted: string[] = []
    const seen: string[] = []
    for (const { provider, fields, secrets } of SAMPLES) {
      const custom_headers = { 'X-Planted': `planted-header-${provider}` }
      const made = expectOk(
        await call('POST', '/credentials', { provider, name: newName(), ...fields, custom_headers }),
        201,
      )
      const hasKey = secrets.some((secret) => secret.startsWith('planted-api-key'))
      expect(made.has_api_key).toBe(hasKey)
      expect(made.api_key_last4).toBe(hasKey ? '6789' : undefined)
      planted.push(...secrets, ...Object.values(custom_headers))
      seen.push(JSON.stringify(made), JSON.stringify(expectOk(await call('GET', `/credentials/${made.id}`))))
    }
    const short = await create({ api_key: 'short-11-ch' })
    expect(short).toMatchObject({ has_api_key: true })
    expect(short.api_key_last4).toBeUndefined()
    planted.push('short-11-ch')
    seen.push(JSON.stringify(expectOk(await call('GET', '/credentials?limit=200'))))
    seen.push(JSON.stringify(expectOk(await call('GET', '/audit?limit=200'))))
    seen.push(expectOk(await call('GET', '/audit/export')))
    seen.push(await databaseText(api()))
    expect(seen.at(-1)).toContain('X-Planted')
    for (const secret of new Set(planted)) {
      expect(seen.map((text) => text.includes(secret) || text.includes(btoa(secret)))).not.toContain(true)
    }
    const state = api().management.states.get(1)
    for (const secret of new Set(planted)) {
      const isOpen = state?.credentials.some(({ secrets, customHeaders }) =>
        [...Object.values(secrets), ...Object.values(customHeaders)].some((value) => value.includes(secret)),
      )
      expect({ secret, isOpen }).toEqual({ secret, isOpen: true })
    }
  })

  test('gateway#13 PUT without a secret keeps it; a changed address without it is 422 and changes nothing', async () => {
    const name = newName()
    const made = await create({ name, base_url: 'https://one.example.org/v1', custom_headers: { 'X-Team': 'red' } })
    const path = `/credentials/${made.id}`
    const open = () =>
      api()
        .management.states.get(1)
        ?.credentials.find(({ id }) => id === made.id)
    const body = {
      provider: 'openai',
      name,
      base_url: 'https://one.example.org/v1',
      custom_headers: { 'X-Team': '***' },
    }
    expectOk(await call('PUT', path, { ...body, api_key: '', default_model: 'gpt' }))
    expect(open()).toMatchObject({
      secrets: { api_key: 'sk-planted-0123456789abcd' },
      customHeaders: { 'X-Team': 'red' },
      defaultModel: 'gpt',
    })
    const before = expectOk(await call('GET', path))
    const moved = { ...body, base_url: 'https://two.example.org/v1' }
    const refused = { fields: ['api_key', 'custom_headers.X-Team'] }
    expectError(await call('PUT', path, moved), 422, 'secret_required', refused)
    expectError(await call('PUT', path, { provider: 'openai', name }), 422, 'secret_required', { fields: ['api_key'] })
    const halfway = { ...moved, api_key: 'sk-another-0123456789' }
    expectError(await call('PUT', path, halfway), 422, 'secret_required', { fields: ['custom_headers.X-Team'] })
    expect(expectOk(await call('GET', path))).toEqual(before)
    expect(open()).toMatchObject({ baseUrl: 'https://one.example.org/v1' })
    expectOk(await call('PUT', path, { ...halfway, custom_headers: { 'X-Team': 'blue' } }))
    expect(open()).toMatchObject({
      baseUrl: 'https://two.example.org/v1',
      secrets: { api_key: 'sk-another-0123456789' },
      customHeaders: { 'X-Team': 'blue' },
    })
  })

  test('gateway#13 what changes nothing leaves version and audit alone; a secret with the same end is a change', async () => {
    const body = {
      provider: 'openai',
      name: newName(),
      custom_headers: { 'X-Team': 'red' },
      api_key: 'sk-one-0123456789',
    }
    const made = expectOk(await call('POST', '/credentials', body), 201)
    const path = `/credentials/${made.id}`
    const acts = async (): Promise<unknown[]> =>
      expectOk(await call('GET', `/audit?target_type=credential&target_id=${made.id}`)).audit
    expect(expectOk(await call('PUT', path, body))).toEqual(made)
    expect(expectOk(await call('PUT', path, { ...body, api_key: '' }))).toEqual(made)
    expect(await acts()).toHaveLength(1)
    const renewed = expectOk(await call('PUT', path, { ...body, api_key: 'sk-two-0123456789' }))
    expect([renewed.version, renewed.api_key_last4]).toEqual([2, made.api_key_last4])
    expect((await acts()).at(-1)).toMatchObject({ action: 'credential.update', changes: { api_key: ['***', '***'] } })
    expect(await acts()).toHaveLength(2)
    expect(
      expectOk(await call('PUT', path, { ...body, custom_headers: { 'X-Team': 'blue' }, api_key: '' })).version,
    ).toBe(3)
  })

  test('gateway#13 the region of Bedrock, the location of Vertex, the endpoint of Azure are addresses', async () => {
    for (const [index, field, value, secret] of [
      [4, 'region', 'us-west-2', ['config.secret_access_key', 'config.session_token']],
      [6, 'location', 'europe-west1', ['config.service_account']],
      [3, 'endpoint', 'https://other.openai.azure.com', ['api_key']],
    ] as const) {
      const sample = SAMPLES[index]
      const name = newName()
      const { id } = expectOk(
        await call('POST', '/credentials', { provider: sample?.provider, name, ...sample?.fields }),
        201,
      )
      const config: Record<string, unknown> = { ...(sample?.fields['config'] as object), [field]: value }
      for (const each of ['secret_access_key', 'session_token', 'service_account']) delete config[each]
      const reply = await call('PUT', `/credentials/${id}`, { provider: sample?.provider, name, config })
      expectError(reply, 422, 'secret_required', { fields: secret })
    }
  })

  test('gateway#14 disabled is out of the state from the answer on, and back when enabled', async () => {
    const { id } = await create()
    const isOn = () =>
      api()
        .management.states.get(1)
        ?.credentials.find((each) => each.id === id)?.enabled
    expect(isOn()).toBe(true)
    expect(expectOk(await call('POST', `/credentials/${id}/disable`))).toMatchObject({ enabled: false, version: 2 })
    expect(isOn()).toBe(false)
    expect(expectOk(await call('POST', `/credentials/${id}/disable`))).toMatchObject({ enabled: false, version: 2 })
    expect(expectOk(await call('POST', `/credentials/${id}/enable`))).toMatchObject({ enabled: true, version: 3 })
    expect(isOn()).toBe(true)
    const { credentials } = expectOk(await call('GET', '/credentials?enabled=false'))
    expect(credentials).toEqual([])
  })

  test('gateway#15 deleting what an alias uses is 409 with the aliases; force ends the memberships', async () => {
    const [one, two] = [await create(), await create()]
    const members = [{ credential_id: one.id, model: 'a' }, { credential_id: two.id }]
    const alias = expectOk(await call('POST', '/model-groups', { name: 'in-use', members }), 201)
    expectError(await call('DELETE', `/credentials/${one.id}`), 409, 'conflict', {
      reason: 'in_use',
      aliases: [{ id: alias.id, name: 'in-use' }],
    })
    expectOk(await call('DELETE', `/credentials/${one.id}?force=true`), 204)
    expect(expectOk(await call('GET', `/model-groups/${alias.id}`)).members).toEqual([{ credential_id: two.id }])
    expectOk(await call('DELETE', `/model-groups/${alias.id}`), 204)
    expectOk(await call('DELETE', `/credentials/${two.id}`), 204)
  })

  test('gateway#17 a stale version and a name in other case are 409', async () => {
    const made = await create({ name: 'Unique name' })
    expectError(await call('POST', '/credentials', openAi({ name: 'UNIQUE NAME' })), 409, 'conflict', {
      reason: 'name',
    })
    const path = `/credentials/${made.id}`
    expectOk(await call('PUT', path, { provider: 'openai', name: 'unique NAME', version: 1 }))
    expectError(await call('PUT', path, { provider: 'openai', name: 'x', version: 1 }), 409, 'conflict', {
      reason: 'version',
    })
    const other = await create()
    const taken = await call('PUT', `/credentials/${other.id}`, { provider: 'openai', name: 'Unique Name' })
    expectError(taken, 409, 'conflict', { reason: 'name' })
    const { token } = await api().user('names@example.org')
    await create({ name: 'unique name', scope: 'user' }, token)
  })

  test('gateway#17 what is wrong with the body is told before what it misses', async () => {
    const { id, name } = await create({})
    for (const fields of [{ base_url: 'http://models.example.org' }, { weight: -1 }, { provider: 'groq' }]) {
      const reply = await call('PUT', `/credentials/${id}`, openAi({ name, version: 99, ...fields }))
      expectError(reply, 400, 'invalid_request', { field: Object.keys(fields)[0] })
    }
  })

  test('gateway#18 custom headers read ***, *** keeps; headers that are ours or no headers are 400', async () => {
    const name = newName()
    const made = await create({ name, custom_headers: { 'X-One': 'first', 'X-Two': 'second' } })
    expect(made.custom_headers).toEqual({ 'X-One': '***', 'X-Two': '***' })
    const custom_headers = { 'x-one': '***', 'X-Three': 'third' }
    const changed = expectOk(await call('PUT', `/credentials/${made.id}`, { provider: 'openai', name, custom_headers }))
    expect(changed.custom_headers).toEqual({ 'x-one': '***', 'X-Three': '***' })
    const open = api()
      .management.states.get(1)
      ?.credentials.find(({ id }) => id === made.id)
    expect(open?.customHeaders).toEqual({ 'x-one': 'first', 'X-Three': 'third' })
    const bad: [Record<string, string>, object?][] = [
      [{ 'X-A': 'a\r\nX-B: b' }],
      [{ 'X-A': 'a\u0007' }],
      [{ 'X A': 'a' }],
      [{ Host: 'a' }],
      [{ 'Content-Length': '1' }],
      [{ 'proxy-authorization': 'a' }],
      [{ Cookie: 'a' }],
      [{ Authorization: 'a' }],
      [{ 'X-A': 'a', 'x-a': 'b' }],
      [{ 'X-New': '***' }],
      [{ 'x-api-key': 'a' }, { provider: 'anthropic' }],
      [{ 'x-goog-api-key': 'a' }, { provider: 'gemini' }],
    ]
    for (const [headers, fields = {}] of bad) {
      const reply = await call('POST', '/credentials', openAi({ ...fields, custom_headers: headers }))
      expectError(reply, 400, 'invalid_request', { field: `custom_headers.${Object.keys(headers).at(-1)}` })
    }
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`X-${i}`, 'v']))
    const reply = await call('POST', '/credentials', openAi({ custom_headers: many }))
    expectError(reply, 400, 'invalid_request', { field: 'custom_headers' })
  })

  test('gateway#19 addresses: http, user, query 400; private and metadata addresses 422', async () => {
    for (const base_url of [
      'http://models.example.org',
      'https://user@models.example.org',
      'https://:secret@models.example.org',
      'https://models.example.org?a=1',
      'https://models.example.org#a',
      'https://models.example.org?',
      'ftp://models.example.org',
      'models.example.org',
      'https:models.example.org',
      'https:///models.example.org',
      'https://@models.example.org',
      ' https://models.example.org',
      'https://models.exa\tmple.org\n',
      'https://models.example.org/a b',
      'https://models.example.org\\@10.0.0.1',
    ]) {
      expectError(await call('POST', '/credentials', openAi({ base_url })), 400, 'invalid_request', {
        field: 'base_url',
      })
    }
    for (const [base_url, host] of [
      ['https://10.0.0.1/v1', '10.0.0.1'],
      ['https://169.254.169.254', '169.254.169.254'],
      ['https://[::ffff:192.168.0.1]/v1', '::ffff:c0a8:1'],
      ['https://[64:ff9b::7f00:1]', '64:ff9b::7f00:1'],
      ['https://metadata.google.internal', 'metadata.google.internal'],
      ['https://2130706434', '127.0.0.2'],
    ]) {
      expectError(await call('POST', '/credentials', openAi({ base_url })), 422, 'address_refused', { host })
    }
    // Before its form: who allows the host for http finds it refused all the same.
    const http = await call('POST', '/credentials', openAi({ base_url: 'http://169.254.169.254/latest' }))
    expectError(http, 422, 'address_refused', { host: '169.254.169.254' })
    const azure = { provider: 'azure-openai', config: { endpoint: 'http://acme.openai.azure.com' } }
    expectError(await call('POST', '/credentials', openAi(azure)), 400, 'invalid_request', { field: 'config.endpoint' })
    await create({ base_url: 'http://127.0.0.1:9999/v1' })
  })

  test('the endpoint of azure-openai ends before the paths that are added to it', async () => {
    const azure = (endpoint: string, fields: object = {}) =>
      call('POST', '/credentials', openAi({ provider: 'azure-openai', config: { endpoint }, ...fields }))
    for (const endpoint of [
      'https://acme.openai.azure.com/openai/v1',
      'https://acme.openai.azure.com/openai/v1/',
      'https://acme.openai.azure.com/openai/deployments/gpt/chat/completions',
      'https://acme.openai.azure.com/openai',
      'https://proxy.example.org/models/openai/v1',
    ]) {
      const refused = await azure(endpoint)
      expectError(refused, 400, 'invalid_request', { field: 'config.endpoint' })
      expect(refused.body.error.message).toMatch(/must end before \/openai.*api_version/)
      const replaced = await azure('https://acme.openai.azure.com', { base_url: endpoint })
      expectError(replaced, 400, 'invalid_request', { field: 'base_url' })
    }
    for (const endpoint of ['https://acme.openai.azure.com/', 'https://proxy.example.org/openai']) {
      expectOk(await azure(endpoint), 201)
    }
  })

  test('an organization has 500 credentials at most', async () => {
    const bo = { token: await api().login('bo@example.net') }
    expectOk(await call('POST', '/credentials', openAi(), bo), 201)
    await api().database.transaction(async (tx) => {
      for (let i = 0; i < 499; i++) {
        await tx.run(
          `INSERT INTO gateway_credentials (organization_id, provider, name, enabled, fields, secret_names, version, created_by,
             created_at, updated_at)
           SELECT organization_id, provider, $1, enabled, fields, secret_names, 1, created_by, created_at, updated_at
            FROM gateway_credentials WHERE organization_id = 2 ORDER BY id LIMIT 1`,
          [`copy ${i}`],
        )
      }
    })
    expectError(await call('POST', '/credentials', openAi(), bo), 409, 'conflict', { reason: 'limit' })
    const first = expectOk(await call('GET', '/credentials?limit=200', undefined, bo))
    const second = expectOk(await call('GET', `/credentials?limit=200&after_id=${first.next_after_id}`, undefined, bo))
    const third = expectOk(await call('GET', `/credentials?limit=200&after_id=${second.next_after_id}`, undefined, bo))
    expect([first, second, third].map(({ credentials }) => credentials.length)).toEqual([200, 200, 100])
    expect(third.next_after_id).toBe('')
  })

  test('gateway#21 a runtime role that the configuration does not give is 403', async () => {
    const config = { region: 'eu-central-1', use_runtime_role: true, role_arn: 'arn:aws:iam::123456789012:role/models' }
    const body = { provider: 'bedrock', name: newName(), config }
    expectError(await call('POST', '/credentials', body), 403, 'forbidden', { setting: 'gateway.runtime_roles' })
    expectError(await call('POST', '/credentials/test', body), 403, 'forbidden')
  })
})

describeGateway(
  'credentials where roles are allowed',
  (api) => {
    test('gateway#21 a shared credential may use the role, a private one may not', async () => {
      const body = {
        provider: 'vertex',
        name: 'role',
        config: { project: 'p', location: 'global', use_runtime_role: true },
      }
      expectOk(await api().call('POST', '/credentials', body), 201)
      expectError(await api().call('POST', '/credentials', { ...body, scope: 'user' }), 403, 'forbidden')
      const token = await api().login('bo@example.net')
      expectError(await api().call('POST', '/credentials', body, { token }), 403, 'forbidden')
    })
  },
  () => ({ runtimeRoles: [1] }),
)
