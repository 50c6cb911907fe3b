import { beforeAll, expect, test } from 'vitest'
import { describeInPlaces } from '../platform/support.ts'
import { addModels, gatewayCli, leftOut } from './gateway-support.ts'

describeInPlaces('mem gateway', (place) => {
  const cli = gatewayCli(place)
  const { mem, gateway, json } = cli
  beforeAll(() => addModels(cli))

  test('a name in its own case wins; what is an id and a name is refused with both told', async () => {
    for (const name of ['pair', 'PAIR']) await gateway('groups', 'add', '--name', name, '--member', 'main')
    const { id, name } = await json('groups', 'update', 'PAIR', '--cache-ttl', '60')
    expect(name).toBe('PAIR')
    expect(await mem(['gateway', 'groups', 'update', 'Pair', '--cache-ttl', '9'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("several are named 'Pair'"),
    })
    const { id: other } = await json('groups', 'add', '--name', String(id), '--member', 'main')
    expect(await mem(['gateway', 'groups', 'update', String(id), '--cache-ttl', '9'])).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        new RegExp(`'${id}' is the id of group 'PAIR' and the name of group ${other}\n.*'PAIR'.*${other}`),
      ),
    })
    expect(await gateway('groups', 'remove', String(other))).toBe(`${id}  removed\n`)
    for (const each of ['pair', String(id)]) await gateway('groups', 'remove', each)
  })

  test('groups: help says what a disabled one leaves open', async () => {
    for (const verb of ['add', 'update']) {
      const { stdout } = await mem(['gateway', 'groups', verb, '--help'])
      expect(stdout.replace(/\s+/g, ' ')).toContain('a disabled one is as if it were not there')
    }
  })

  test('groups, keys, settings, metrics token', async () => {
    expect(
      await gateway(
        'groups',
        'add',
        '--name',
        'quick',
        '--member',
        'main,model=local-model,weight=3',
        '--cache-ttl',
        '60',
      ),
    ).toMatch(/^\d+ {2}quick {2}weighted {2}\d+:local-model\n$/)
    const group = await json(
      'groups',
      'update',
      'quick',
      '--strategy',
      'ordered',
      '--fallback-model',
      'local-model',
      '--cache-ttl',
      '0',
    )
    expect(group).toMatchObject({
      strategy: 'ordered',
      members: [{ model: 'local-model', weight: 3 }],
      fallback_models: ['local-model'],
    })
    expect(group).not.toHaveProperty('cache_ttl')
    expect(await gateway('groups', 'list')).toContain('then local-model')

    const made = await mem([
      'gateway',
      'keys',
      'add',
      '--name',
      'ci',
      '--allow',
      'fast',
      '--credential',
      'main',
      '--budget',
      '20',
    ])
    expect(made).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ {2}ci {2}mvk_[\w-]{43}\n$/),
      stderr: expect.stringContaining('not shown again'),
    })
    const key = await json(
      'keys',
      'update',
      'ci',
      '--limit',
      'max_concurrency=5',
      '--budget-window',
      'day',
      '--expires-at',
      '2030-01-01',
    )
    expect(key).toMatchObject({
      allowed_models: ['fast'],
      budget: { limit_usd: '20', window: 'day', unknown_price: 'deny' },
      limits: { max_concurrency: 5 },
      expires_at: '2030-01-01T00:00:00.000Z',
    })
    expect((await gateway('keys', 'rotate', 'ci', '--grace-seconds', '60')).split('  ')[2]).toMatch(/^mvk_/)
    expect(await gateway('keys', 'rotate', 'ci', '--quiet')).toMatch(/^mvk_[\w-]+\n$/)
    expect(await json('keys', 'update', 'ci', '--budget', '', '--allow', '', '--expires-at', '')).not.toHaveProperty(
      'budget',
    )
    expect(await gateway('keys', 'list')).toContain('  ci  mvk_')

    expect(await gateway('settings')).toContain('cache_scope  caller\n')
    const settings = await json(
      'settings',
      '--user-budget',
      '5',
      '--blocked-model',
      'gpt-3*',
      '--cache-scope',
      'organization',
      '--member-keys',
    )
    expect(settings).toMatchObject({
      user_budget: { limit_usd: '5', window: 'month', unknown_price: 'deny' },
      blocked_models: ['gpt-3*'],
      cache_scope: 'organization',
      member_keys: true,
    })
    expect(await gateway('settings', '--user-budget', '', '--blocked-model', '')).toContain('user_budget  none\n')

    expect(await gateway('metrics-token')).toBe('none\n')
    const token = (await gateway('metrics-token', 'create')).trim()
    expect(token).toMatch(/^mmt_[\w-]{43}$/)
    const scraped = await fetch(`${cli.url()}/metrics/ai-gateway`, { headers: { authorization: `Bearer ${token}` } })
    expect(scraped.status).toBe(200)
    expect(await gateway('metrics-token', 'show')).toContain(`…${token.slice(-4)}`)
    expect(await gateway('metrics-token', 'revoke')).toBe('metrics token  revoked\n')
  })

  test('usage, cost, audit, models', async () => {
    await gateway('chat', 'hi', '--model', 'fast')
    const [record] = (await json('usage', '--outcome', 'ok', '--limit', '1')).usage
    expect(record).toMatchObject({ provider: 'openai-compatible', model_used: 'local-model' })
    expect(await gateway('usage', '--request-id', record.request_id)).toMatch(
      / {2}ok {2}local-model {2}.* tokens {2}.* ms\n$/,
    )
    const cost = await gateway('cost', '--group-by', 'model,provider')
    expect(cost).toMatch(/^total {2}/m)
    expect(cost).not.toMatch(/\b1 requests/)
    expect(await gateway('cost', '--group-by', 'key')).toMatch(/^(?:no key|key \d+) {2}/)
    expect(await gateway('audit', '--action', 'credential.create', '--limit', '1')).toMatch(
      / {2}user 1 {2}credential\.create {2}credential main/,
    )
    expect(await gateway('audit', '--verify')).toMatch(/^whole {2}\d+ records {2}[\da-f]{64}\n$/)
    expect(await gateway('models')).toContain('local-model')
    expect(await gateway('models', '--explain', 'fast', '--key', 'ci')).toMatch(
      /^main {2}local-model {2}member {2}priority 0 {2}/,
    )
    expect(await gateway('groups', 'remove', 'fast')).toBe('fast  removed\n')
    expect(await gateway('keys', 'remove', 'ci')).toBe('ci  removed\n')
  })
})

test('no verb was left out but the server itself, credentials and chat', () => {
  expect(leftOut(/^gateway(?! credentials| chat)/)).toEqual(['gateway'])
})
