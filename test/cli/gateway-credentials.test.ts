import { expect, test } from 'vitest'
import { describeInPlaces, PASSWORD } from '../platform/support.ts'
import { gatewayCli, leftOut, VERBS } from './gateway-support.ts'
import { runCli, type CliResult } from './run-cli.ts'

describeInPlaces('mem gateway credentials', (place) => {
  const { model, file, mem, gateway, json } = gatewayCli(place)
  /** The session of a new member. */
  const memberToken = async (email: string): Promise<string> => {
    const env = { MEM_PASSWORD: PASSWORD }
    expect(await mem(['platform', 'users', 'add', '--email', email], { env })).toMatchObject({ code: 0 })
    return JSON.parse((await mem(['login', '--email', email, '-o', 'json'], { env })).stdout).token
  }

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
    const tier = (priority: string): Promise<string> => gateway('credentials', 'update', 'main', '--priority', priority)
    expect(await tier('2')).toMatch(/ {2}weight 1 {2}priority 2\n$/)
    expect(await tier('0')).toMatch(/ {2}weight 1\n$/)
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
    const chat = ['gateway', 'chat', 'hi', '--model', 'local-model', '--credential', 'wrong']
    expect(await mem(chat)).toMatchObject({ code: 3 })
    expect(await gateway('credentials', 'list')).toMatch(/ {2}wrong .* {2}rejected {2}until \d{4}-\S+Z {2}weight 1 {2}/)
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
    await fails(['credentials', 'update', 'main', '--api-key-file', file('none', '\n')], 4, /none is empty/)
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
    const named = '- {name: x, provider: ollama}\n'
    file('credentials.yaml', `${named}${named.replace('x,', 'X, scope: organization,')}`)
    expect(await apply()).toMatchObject({ code: 1, stderr: expect.stringContaining("'X' stands there twice") })
    file('credentials.yaml', '# nothing is no empty list')
    expect(await apply('--prune')).toMatchObject({ code: 1, stderr: expect.stringContaining('to be a list') })
    file('credentials.yaml', 'a: [')
    expect(await apply()).toMatchObject({ code: 1, stderr: expect.stringContaining('is not YAML') })
    expect((await mem(['gateway', 'credentials', 'apply', '--file', '-'], { stdin: '[]' })).stdout).toBe('')
  })

  test('gateway#109 apply tells what was done before it failed, and which credential it failed at', async () => {
    const { base_url: baseUrl } = model().credential
    const early = {
      name: 'early',
      provider: 'openai-compatible',
      base_url: String(baseUrl),
      api_key_env: 'EARLY_KEY',
    }
    const list = [early, { name: 'late', provider: 'mistral' }]
    const yaml = file('half.yaml', JSON.stringify(list))
    const env = { EARLY_KEY: 'sk-early-0123456789' }
    const apply = ['gateway', 'credentials', 'apply', '--file', yaml]
    expect(await mem(apply, { env })).toEqual({
      code: 4,
      stdout: 'early  created\n',
      stderr: expect.stringContaining('late: api_key is required'),
    })
    expect(JSON.parse((await mem([...apply, '-o', 'json'], { env })).stdout)).toEqual({
      dry_run: false,
      credentials: [{ name: 'early', action: 'unchanged' }],
    })
    await gateway('credentials', 'remove', 'early')
  })

  test('gateway#109 a pair is given once, and a key is no argument', async () => {
    const update = ['gateway', 'credentials', 'update', 'main']
    const twice = async (flag: string, pairs: string[], stderr: string): Promise<void> => {
      const argv = [...update, ...pairs.flatMap((pair) => [flag, pair])]
      expect(await mem(argv)).toMatchObject({ code: 1, stderr: expect.stringContaining(stderr) })
    }
    await twice('--limit', ['max_concurrency=1', 'max_concurrency=2'], '--limit max_concurrency is given twice')
    await twice('--map', ['a=b', 'a=c'], '--map a is given twice')
    await twice('--config', ['responses=true', 'responses=false'], '--config responses is given twice')
    await twice('--header', ['x-a=b', 'x-a=c'], '--header x-a is given twice')
    for (const argv of [update, ['gateway', 'credentials', 'add', '--provider', 'openai', '--name', 'x']]) {
      expect(await mem([...argv, '--api-key', 'sk-secret'])).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/arguments are no secret\n.*--api-key-file/),
      })
    }
  })

  test("gateway#109 bedrock's bearer key comes from a file or the environment, and apply repeated changes nothing", async () => {
    const key = file('bedrock.key', 'bedrock-bearer-0123456789\n')
    const bedrock = ['credentials', 'add', '--provider', 'bedrock', '--name', 'rr', '--config', 'region=us-east-1']
    const added = await json(...bedrock, '--config', `api_key=@${key}`)
    expect(added).toMatchObject({ has_api_key: true, api_key_last4: '6789' })
    expect(JSON.stringify(added)).not.toContain('bedrock-bearer')
    expect(await mem(['gateway', ...bedrock, '--config', 'api_key=plain'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no secret\n.*api_key=@file/),
    })
    const entry = { name: 'rr', provider: 'bedrock', config: { region: 'us-east-1', api_key_env: 'QK' } }
    const yaml = file('bedrock.yaml', JSON.stringify([entry]))
    const env = { QK: 'bedrock-bearer-0123456789' }
    for (const more of [['--dry-run'], []]) {
      const applied = await mem(['gateway', 'credentials', 'apply', '--file', yaml, ...more], { env })
      expect(applied).toMatchObject({ code: 0, stdout: 'rr  unchanged\n' })
    }
    await gateway('credentials', 'remove', 'rr')
  })

  test("gateway#109 a terminal is not asked for bedrock's key when it stands in config", async () => {
    const config = ['--config', 'region=us-east-1', '--config', `api_key=@${file('bedrock.key', 'bearer-0123456789')}`]
    const add = ['gateway', 'credentials', 'add', '--provider', 'bedrock', '--name', 'rr', ...config]
    const asked = await mem(add, { stdin: 'n\n', isTTY: true })
    expect(asked).toMatchObject({ code: 0, stderr: expect.not.stringMatching(/access_key_id|api_key/) })
    await gateway('credentials', 'remove', 'rr')
  })

  test('gateway#109 apply refuses a key that comes from nowhere, or from two places', async () => {
    const fails = async (fields: object, stderr: string): Promise<void> => {
      const yaml = file('faulty.yaml', JSON.stringify([{ name: 'faulty', provider: 'ollama', ...fields }]))
      const env = { A: 'sk-a-0123456789' }
      expect(await mem(['gateway', 'credentials', 'apply', '--file', yaml], { env })).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining(stderr),
      })
    }
    await fails({ api_key_env: ['A'] }, 'faulty: api_key_env must be the name of an environment variable')
    await fails({ api_key_env: null }, 'faulty: api_key_env must be the name of an environment variable')
    await fails({ api_key_file: '' }, 'faulty: api_key_file must be the path of a file')
    await fails({ api_key_env: 'A', api_key_file: 'key' }, 'faulty: api_key_env and api_key_file exclude each other')
    await fails({ api_key: 'sk', api_key_env: 'A' }, 'faulty: api_key and api_key_env exclude each other')
    const config = { service_account_env: 7 }
    await fails({ provider: 'vertex', config }, 'faulty: config.service_account_env must be the name')
  })

  test('gateway#109 apply finds what the server would refuse before it does anything', async () => {
    const address = { provider: 'openai-compatible', base_url: String(model().credential['base_url']) }
    const saved = { name: 'saved', ...address, api_key_env: 'KEY' }
    const env = { KEY: 'sk-saved-0123456789' }
    const apply = (entries: object[], ...more: string[]): Promise<CliResult> => {
      const yaml = file('planned.yaml', JSON.stringify(entries))
      return mem(['gateway', 'credentials', 'apply', '--file', yaml, ...more], { env })
    }
    expect(await apply([saved])).toMatchObject({ code: 0 })
    const first = { name: 'first', provider: 'ollama' }
    const fails = async (entries: object[], more: string[], stderr: RegExp): Promise<void> => {
      for (const dry of [['--dry-run'], []]) {
        const refused = { code: 4, stdout: '', stderr: expect.stringMatching(stderr) }
        expect(await apply([first, ...entries], ...more, ...dry)).toEqual(refused)
      }
    }
    await fails(
      [{ ...saved, provider: 'mistral' }],
      [],
      /saved: provider is openai-compatible and stays so\n.*another name/,
    )
    const moved = { ...address, name: 'saved', base_url: 'http://127.0.0.1:9/v1' }
    await fails([moved], [], /saved: .*send api_key anew \(secret_required\)\n.*every secret again/)
    await gateway('groups', 'add', '--name', 'user', '--member', 'saved')
    await fails([], ['--prune'], /saved: it is a member of user\n.*--force/)
    expect(await apply([{ ...moved, api_key_env: 'KEY' }])).toMatchObject({ code: 0, stdout: 'saved  updated\n' })
    await gateway('credentials', 'remove', 'saved', '--force')
  })

  test('gateway#109 what is refused comes with a hint that helps', async () => {
    const add = ['gateway', 'credentials', 'add', '--name', 'r']
    const local = [...add, '--provider', 'openai-compatible', '--base-url']
    const metadata = await mem([...local, 'http://169.254.169.254/v1'])
    expect(metadata).toMatchObject({ code: 4, stderr: expect.stringContaining('it is never called') })
    expect(metadata.stderr).not.toContain('allowed_hosts')
    expect(await mem([...local, 'https://10.0.0.1/v1'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('whoever runs the server can allow it in gateway.allowed_hosts'),
    })
    const role = ['--provider', 'bedrock', '--config', 'region=us-east-1', '--config', 'use_runtime_role=true']
    const refused = await mem([...add, ...role])
    expect(refused).toMatchObject({ stderr: expect.stringMatching(/runtime_roles names \(forbidden\)\n.*mem\.yaml/) })
    expect(refused.stderr).not.toContain('Ask an admin')
    const keyToken = (await gateway('keys', 'add', '--name', 'asker', '--quiet')).trim()
    expect(await mem(['gateway', 'usage', '--session-token', keyToken])).toMatchObject({
      stderr: expect.stringMatching(/session of a person.*\n.*mem login/),
    })
    const member = await memberToken('dora@example.org')
    expect(await mem(['gateway', 'audit', '--session-token', member])).toMatchObject({
      stderr: expect.stringMatching(/permission admin.*\n.*Ask an admin/),
    })
    expect(await mem(['gateway', 'keys', 'add', '--name', 'x', '--session-token', member])).toMatchObject({
      stderr: expect.stringMatching(/member_keys is off.*\n.*gateway settings --member-keys/),
    })
    await gateway('groups', 'add', '--name', 'holds', '--member', 'main')
    expect(await mem(['gateway', 'credentials', 'remove', 'main'])).toMatchObject({
      stderr: expect.stringMatching(/member of the aliases holds.*\n.*gateway credentials remove <name> --force/),
    })
    await gateway('groups', 'remove', 'holds')
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

test('no verb of credentials was left out', () => {
  expect(leftOut(/^gateway credentials/)).toEqual([])
})
