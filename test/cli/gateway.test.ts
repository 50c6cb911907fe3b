import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SECTIONS } from '../../src/cli/table.ts'
import { describeInPlaces, initialize, startPlatform, type PlatformApi } from '../platform/support.ts'
import { startFakeModel, type FakeModel } from '../support/fake-model/index.ts'
import { openServer } from '../support/http-server.ts'
import { runCli, type CliResult } from './run-cli.ts'

const VERBS = Object.keys(SECTIONS['Model gateway:'] ?? {}).sort((a, b) => b.length - a.length)
const ran = new Set<string>()

describeInPlaces('mem gateway', (place) => {
  let api: PlatformApi | undefined
  let fake: FakeModel | undefined
  const model = (): FakeModel => {
    if (!fake) throw new Error('the provider is not up yet')
    return fake
  }
  const file = (name: string, text: string | Uint8Array): string => {
    const path = join(place().directory, name)
    writeFileSync(path, text)
    return path
  }
  const mem = (argv: string[], { env = {}, stdin = '', isTTY = false } = {}): Promise<CliResult> => {
    const verb = VERBS.find((name) => argv.join(' ').startsWith(name))
    if (verb !== undefined) ran.add(verb)
    const own = { HOME: place().directory, MEM_ENDPOINT: api?.url ?? '', MEM_SESSION_TOKEN: api?.admin ?? '' }
    return runCli(argv, { env: { ...own, ...env }, stdin, isTTY })
  }
  const gateway = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await mem(['gateway', ...argv])
    expect({ code, stderr, argv }).toMatchObject({ code: 0 })
    return stdout
  }
  const json = async (...argv: string[]): Promise<any> => JSON.parse(await gateway(...argv, '-o', 'json')) // oxlint-disable-line typescript/no-explicit-any -- tests look at what came

  beforeAll(async () => {
    fake = await startFakeModel({ provider: 'openai-compatible' })
    const config = file('mem.yaml', 'gateway: {allowed_hosts: ["127.0.0.1"], seed: 1}\n')
    await initialize(place())
    api = await startPlatform(place(), { MEM_CONFIG: config })
  })
  afterAll(async () => {
    await api?.stop()
    await fake?.close()
  })

  test('gateway#109 credentials: add, list, update, test, disable, enable, remove', async () => {
    const { base_url: baseUrl } = model().credential
    const address = ['--provider', 'openai-compatible', '--base-url', String(baseUrl)]
    const key = file('key', `${String(model().credential['api_key'])}\n`)
    const added = await gateway(
      'credentials',
      'add',
      ...address,
      '--name',
      'main',
      '--api-key-file',
      key,
      '--allow',
      'local-model',
    )
    expect(added).toMatch(/^\d+ {2}main {2}openai-compatible {2}unknown {2}weight 1\n$/)
    const more = [
      '--default-model',
      'local-model',
      '--weight',
      '0.5',
      '--map',
      'small=local-model',
      '--limit',
      'requests_per_minute=600',
    ]
    const changed = await json(
      'credentials',
      'update',
      'MAIN',
      ...more,
      '--config',
      'drop=seed,user',
      '--header',
      'x-team=a',
      '--time-limit',
      'idle_ms=5000',
    )
    expect(changed).toMatchObject({
      name: 'main',
      version: 2,
      has_api_key: true,
      api_key_last4: String(model().credential['api_key']).slice(-4),
      default_model: 'local-model',
      weight: 0.5,
      model_mapping: { small: 'local-model' },
      limits: { requests_per_minute: 600 },
      timeouts: { idle_ms: 5000 },
      custom_headers: { 'x-team': '***' },
      config: { drop: ['seed', 'user'] },
    })
    const cleared = await json(
      'credentials',
      'update',
      'main',
      '--default-model',
      '',
      '--map',
      'small=',
      '--limit',
      'requests_per_minute=',
      '--weight',
      '1',
    )
    expect(cleared).toMatchObject({
      model_mapping: {},
      limits: {},
      allowed_models: ['local-model'],
      custom_headers: { 'x-team': '***' },
    })
    expect(cleared).not.toHaveProperty('default_model')
    expect(await gateway('credentials', 'test', 'main')).toMatch(/^main {2}works {2}auth {2}\d+ ms {2}\d+ models\n$/)
    expect(await gateway('credentials', 'disable', 'main')).toContain('disabled')
    expect(await gateway('credentials', 'enable', 'main')).toContain('healthy')
    expect(await gateway('credentials', 'list', '--provider', 'openai-compatible', '-q')).toMatch(/^\d+\n$/)

    const wrong = await mem(
      ['gateway', 'credentials', 'add', ...address, '--name', 'wrong', '--api-key-env', 'WRONG'],
      {
        env: { WRONG: 'not-the-key-at-all' },
      },
    )
    expect(wrong.code).toBe(0)
    const refused = await mem(['gateway', 'credentials', 'test', 'wrong'])
    expect(refused).toMatchObject({ code: 4, stdout: expect.stringContaining('does not work') })
    expect(refused.stderr).not.toContain('not-the-key')
    expect(await gateway('credentials', 'remove', 'wrong', '--force')).toBe('wrong  removed\n')
  })

  test('gateway#109 what is wrong is told, with what to do; a secret is never an argument', async () => {
    const fails = async (argv: string[], code: number, stderr: RegExp): Promise<void> => {
      expect(await mem(['gateway', ...argv])).toEqual({ code, stdout: '', stderr: expect.stringMatching(stderr) })
    }
    await fails(['credentials', 'add'], 1, /--provider is required/)
    await fails(['credentials', 'add', '--provider', 'openai', '--name', 'x'], 1, /--api-key-file is required/)
    await fails(
      ['credentials', 'add', '--provider', 'bedrock', '--name', 'x', '--config', 'secret_access_key=abc'],
      1,
      /no secret\n.*@file/,
    )
    await fails(
      ['credentials', 'add', '--provider', 'openai', '--name', 'x', '--api-key-env', 'NOWHERE'],
      1,
      /NOWHERE is not set/,
    )
    await fails(['credentials', 'add', '--provider', 'azure-openai', '--name', 'x'], 4, /endpoint/)
    await fails(['credentials', 'update', 'nobody', '--weight', '2'], 8, /no credential 'nobody'\n.*main/)
    await fails(['credentials', 'update', 'main', '--weight', 'much'], 1, /no number/)
    await fails(['credentials', 'update', 'main', '--base-url', 'http://127.0.0.1:9/v1'], 4, /secret_required/)
    await fails(['groups', 'add', '--name', 'g', '--fallback-on', 'client'], 1, /missing, context, filtered\./)
    await fails(['groups', 'add', '--name', 'g', '--member', 'main,colour=red'], 1, /model=, weight=, priority=/)
    await fails(['usage', '--session-token', 'mst_x'], 2, /unauthorized/)
    for (const verb of VERBS.filter((name) => name !== 'gateway')) {
      const { stdout } = await runCli([...verb.split(' '), '--help'])
      expect(stdout).not.toMatch(/--(api-key|secret|token|password) </)
      expect(stdout).toContain('Examples:\n  mem gateway')
    }
  })

  test('gateway#109 apply: creates, repeats without a change, updates, prunes', async () => {
    const { base_url: baseUrl } = model().credential
    const list = (weight: number): string => `
- name: main
  provider: openai-compatible
  base_url: ${String(baseUrl)}
  api_key_file: key
  allowed_models: [local-model]
  config: {drop: [seed, user]}
  custom_headers: {x-team: a}
  timeouts: {idle_ms: 5000}
- name: second
  provider: openai-compatible
  base_url: ${String(baseUrl)}
  api_key_env: SECOND_KEY
  weight: ${weight}
- name: cloud
  provider: bedrock
  enabled: false
  config: {region: eu-central-1, access_key_id: AKIAIOSFODNN7EXAMPLE, secret_access_key_env: AWS_KEY}
`
    const yaml = file('credentials.yaml', list(2))
    const env = { SECOND_KEY: 'sk-second-0123456789', AWS_KEY: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' }
    const apply = (...more: string[]): Promise<CliResult> =>
      mem(['gateway', 'credentials', 'apply', '--file', yaml, ...more], { env })
    expect(await apply('--dry-run')).toEqual({
      code: 0,
      stdout: 'main  unchanged\nsecond  created\ncloud  created\n',
      stderr: 'nothing was changed; whether secrets are new is seen when it is done\n',
    })
    expect((await apply()).stdout).toBe('main  unchanged\nsecond  created\ncloud  created\n')
    const before = await json('credentials', 'list')
    expect((await apply()).stdout).toBe('main  unchanged\nsecond  unchanged\ncloud  unchanged\n')
    expect(await json('credentials', 'list')).toEqual(before)
    file('credentials.yaml', list(3))
    expect((await apply()).stdout).toBe('main  unchanged\nsecond  updated\ncloud  unchanged\n')
    // The same end, another beginning.
    const renewed = { ...env, SECOND_KEY: 'sk-SECOND-0123456789', AWS_KEY: `${env.AWS_KEY}2` }
    const renew = ['gateway', 'credentials', 'apply', '--file', yaml]
    expect((await mem(renew, { env: renewed })).stdout).toBe('main  unchanged\nsecond  updated\ncloud  updated\n')
    expect((await mem(renew, { env: renewed })).stdout).toBe('main  unchanged\nsecond  unchanged\ncloud  unchanged\n')
    file('credentials.yaml', list(3).split('- name: second')[0] ?? '')
    expect((await apply('--prune', '--dry-run')).stdout).toBe('main  unchanged\nsecond  removed\ncloud  removed\n')
    expect((await apply('--prune')).stdout).toBe('main  unchanged\nsecond  removed\ncloud  removed\n')
    expect(await gateway('credentials', 'list')).toMatch(/^\d+ {2}main .*\n$/)

    file('credentials.yaml', '- name: x\n  provider: openai\n  colour: red\n')
    expect(await apply()).toMatchObject({ code: 4, stderr: expect.stringContaining('x: colour is not a known field') })
    file('credentials.yaml', '# nothing is no empty list')
    expect(await apply('--prune')).toMatchObject({ code: 1, stderr: expect.stringContaining('to be a list') })
    file('credentials.yaml', 'a: [')
    expect(await apply()).toMatchObject({ code: 1, stderr: expect.stringContaining('is not YAML') })
    expect((await mem(['gateway', 'credentials', 'apply', '--file', '-'], { stdin: '[]' })).stdout).toBe('')
  })

  test('groups, keys, settings, metrics token', async () => {
    expect(
      await gateway(
        'groups',
        'add',
        '--name',
        'fast',
        '--member',
        'main,model=local-model,weight=3',
        '--cache-ttl',
        '60',
      ),
    ).toMatch(/^\d+ {2}fast {2}weighted {2}\d+:local-model\n$/)
    const group = await json(
      'groups',
      'update',
      'fast',
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
    const scraped = await fetch(`${api?.url}/metrics/ai-gateway`, { headers: { authorization: `Bearer ${token}` } })
    expect(scraped.status).toBe(200)
    expect(await gateway('metrics-token', 'show')).toContain(`…${token.slice(-4)}`)
    expect(await gateway('metrics-token', 'revoke')).toBe('metrics token  revoked\n')
  })

  test('gateway#110 chat: a stream, JSON, standard input, a picture, a key; tokens and cost on standard error', async () => {
    const streamed = await mem(['gateway', 'chat', 'Say hi', '--model', 'fast', '--system', 'Be brief.'])
    expect(streamed).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^\d+ \+ \d+ tokens .*openai-compatible main local-model\n$/),
    })
    expect(streamed.stdout).toMatch(/.+\n$/)
    expect(model().received.at(-1)?.body).toMatchObject({
      stream: true,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Say hi' },
      ],
    })
    const whole = await mem(
      ['gateway', 'chat', '-', '--model', 'local-model', '--no-stream', '--json', '--credential', 'main'],
      { stdin: 'From a pipe' },
    )
    expect(whole.code).toBe(0)
    expect(model().received.at(-1)?.body).toMatchObject({
      messages: [{ role: 'user', content: 'From a pipe' }],
      response_format: { type: 'json_object' },
    })
    const picture = file('dot.png', Buffer.from('89504e470d0a1a0a', 'hex'))
    const { choices } = await json('chat', 'What is it?', '--model', 'fast', '--image', picture)
    expect(choices[0].message.content).toMatch(/./)
    expect(JSON.stringify(model().received.at(-1)?.body)).toContain('data:image/png;base64,iVBORw0KGgo=')

    const token = (await gateway('keys', 'rotate', 'ci')).trim().split('  ')[2] ?? ''
    const keyFile = file('ci.key', `${token}\n`)
    const withKey = await mem(['gateway', 'chat', 'hi', '--model', 'fast', '--key-file', keyFile], {
      env: { MEM_SESSION_TOKEN: '' },
    })
    expect(withKey.code).toBe(0)
    const models = await mem(['gateway', 'models'], { env: { MEM_SESSION_TOKEN: '', MEM_GATEWAY_KEY: token } })
    expect(models.stdout).toContain('fast  alias\n')
  })

  test('gateway#110 chat: exit codes', async () => {
    const chat = (...argv: string[]): Promise<CliResult> => mem(['gateway', 'chat', 'hi', ...argv])
    expect(await chat()).toMatchObject({ code: 1, stderr: expect.stringContaining('--model') })
    expect(await mem(['gateway', 'chat', '-', '--model', 'fast'], { stdin: ' \n' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the prompt is empty'),
    })
    expect(await chat('--model', 'nobody-knows')).toMatchObject({
      code: 8,
      stderr: expect.stringMatching(/model_not_found\)\n.*gateway models/),
    })
    expect(await chat('--model', 'fast', '--session-token', 'mst_x')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('invalid_api_key'),
    })
    expect(await chat('--model', 'fast', '--image', '/nowhere.png')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('cannot read'),
    })
    expect(await chat('--model', 'fast', '--image', file('x.txt', 'no picture'))).toMatchObject({ code: 1 })
    model().setScript({ status: 503 })
    expect(await chat('--model', 'local-model')).toMatchObject({ code: 3 })
    model().setScript([])
    expect(
      await mem(['gateway', 'chat', 'hi', '--model', 'fast'], { env: { MEM_ENDPOINT: 'http://127.0.0.1:9' } }),
    ).toMatchObject({ code: 4, stderr: expect.stringContaining('cannot reach') })
  })

  test('gateway#110 chat: an answer that breaks off, and one that --timeout does not wait for', async () => {
    const broken = await openServer((_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream', 'content-length': 99 })
        .write('data: {', () => response.destroy())
    })
    const silent = await openServer(() => undefined)
    const chat = ['gateway', 'chat', 'hi', '--model', 'fast']
    for (const more of [[], ['-o', 'json']]) {
      expect(await mem([...chat, ...more], { env: { MEM_ENDPOINT: broken } })).toMatchObject({
        code: 3,
        stderr: 'error: the answer broke off\n',
      })
    }
    expect(await mem([...chat, '--timeout', '50ms'], { env: { MEM_ENDPOINT: silent } })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/did not answer within 0\.05 s\n.*--timeout/),
    })
  })

  test('gateway#110 Ctrl-C ends the call at the provider and leaves with 130', async () => {
    await gateway('credentials', 'enable', 'main')
    await gateway('credentials', 'test', 'main')
    model().setScript({ silent: 1 })
    const before = model().received.length
    const running = mem(['gateway', 'chat', 'Count to a million', '--model', 'local-model'])
    await model().waitFor((call) => call.number > before)
    process.emit('SIGINT')
    expect(await running).toMatchObject({ code: 130, stderr: expect.stringContaining('stopped') })
    await model().waitForClosed((call) => call.number > before)
    model().setScript([])
  })

  test('usage, cost, audit, models', async () => {
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

  test('gateway#109 a terminal is asked for what is missing, unseen where it is secret, and offered a test', async () => {
    const { base_url: baseUrl } = model().credential
    const key = String(model().credential['api_key'])
    const add = [
      'credentials',
      'add',
      '--provider',
      'openai-compatible',
      '--name',
      'asked',
      '--base-url',
      String(baseUrl),
    ]
    const asked = await mem(['gateway', ...add], { stdin: `${key}\n`, isTTY: true })
    expect(asked.code).toBe(0)
    expect(asked.stderr).toContain('Try it now?')
    expect(asked.stdout + asked.stderr).not.toContain(key)
    expect(await gateway('credentials', 'test', 'asked')).toContain('works')
  })
})

test('no verb was left out but the server itself', () => {
  expect(VERBS.filter((verb) => !ran.has(verb))).toEqual(['gateway'])
})
