import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SECTIONS } from '../../src/cli/table.ts'
import { runCli, type CliResult } from '../cli/run-cli.ts'
import { openServer } from '../support/http-server.ts'
import { describeInPlaces, describePlatform, PASSWORD, type PlatformApi } from './support.ts'

const VERBS = Object.keys(SECTIONS['Organizations, users, projects:'] ?? {})

const ran = new Set<string>()

/** Runs a verb as a person on this server's machine would. */
function mem(api: PlatformApi, argv: string[], { env = {}, stdin = '' } = {}): Promise<CliResult> {
  const verb = VERBS.find((name) => argv.join(' ').startsWith(name))
  if (verb !== undefined) ran.add(verb)
  const { directory } = api.place
  return runCli(argv, { env: { HOME: directory, ...api.place.env, MEM_ENDPOINT: api.url, ...env }, stdin })
}

describePlatform('git-host#13', (api) => {
  const text = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await mem(api(), argv)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }
  const session = (): string => join(api().place.directory, '.mem/session.json')

  test('git-host#13 who types no password is told so, and no login has failed', async () => {
    const env = { HOME: api().place.directory, NO_COLOR: '1', MEM_ENDPOINT: api().url }
    const login = ['login', '--email', 'ada@example.org']
    for (let i = 0; i < 11; i++) {
      const refused = { code: 1, stderr: expect.stringContaining('error: a password is required') }
      expect(await runCli(login, { env, isTTY: true })).toMatchObject(refused)
    }
    expect(await mem(api(), login, { env: { MEM_PASSWORD: PASSWORD } })).toMatchObject({ code: 0 })
  })

  test('git-host#13 every route of the platform works by verb', async () => {
    const login = await mem(api(), ['login', '--email', 'ada@example.org'], { env: { MEM_PASSWORD: PASSWORD } })
    expect(login).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ada@example\.org {2}logged in {2}until 20/),
    })
    expect(statSync(session()).mode & 0o777).toBe(0o600)
    expect(JSON.parse(readFileSync(session(), 'utf8'))).toMatchObject({ endpoint: api().url, email: 'ada@example.org' })
    expect(await text('whoami')).toBe('ada@example.org  admin  Acme\n')

    const password = join(api().place.directory, 'password')
    writeFileSync(password, 'a password of its own\r\n')
    const add = ['platform', 'users', 'add', '--email', 'bo@example.org', '--password-file', password]
    expect(await text(...add, '--display-name', 'Bo')).toBe('2  bo@example.org  Bo  member  active\n')
    expect(await text('platform', 'users', 'set', '2', '--role', 'admin', '--display-name', '')).toBe(
      '2  bo@example.org  admin  active\n',
    )
    const stdin = { stdin: `${PASSWORD}\n` }
    const changed = await mem(api(), ['platform', 'users', 'set', '2', '--password-file', '-', '--no-active'], stdin)
    expect(changed.stdout).toBe('2  bo@example.org  admin  inactive\n')
    const page = await mem(api(), ['platform', 'users', 'list', '--limit', '1'])
    expect(page).toEqual({ code: 0, stdout: '1  ada@example.org  admin  active\n', stderr: 'more: --after-id 1\n' })
    expect(await text('platform', 'users', 'list', '--after-id', '1', '-q')).toBe('2\n')

    expect(await text('platform', 'flags', 'set', 'feature_git_host', '--enabled')).toBe('feature_git_host  on\n')
    expect(await text('platform', 'flags', 'set', 'feature_git_host', '--no-enabled')).toBe('feature_git_host  off\n')
    expect(JSON.parse(await text('platform', 'flags', 'list', '-o', 'json'))).toEqual({
      flags: [{ name: 'feature_git_host', enabled: false }],
    })

    const permissions = 'project:read project:write project:settings'
    expect(await text('platform', 'projects', 'add', '--name', 'site')).toBe(`1  site  ${permissions}\n`)
    const external = ['platform', 'projects', 'set', '1', '--name', 'page', '--source-control', 'external']
    expect(await text(...external)).toBe(`1  page  external  ${permissions}\n`)
    expect(await text('platform', 'projects', 'set', '1', '--source-control', 'none')).toBe(`1  page  ${permissions}\n`)
    expect(await text('platform', 'projects', 'list')).toBe(`1  page  ${permissions}\n`)

    const inProject = ['--project', '1']
    expect(await text('platform', 'members', 'set', '2', '--role', 'manager', ...inProject)).toBe('2  manager\n')
    expect(await text('platform', 'members', 'list', ...inProject)).toBe('2  manager\n')
    expect(await text('platform', 'members', 'remove', '2', ...inProject)).toBe('2  removed\n')

    const item = ['platform', 'items', 'add', '--type', 'issue', '--title', 'The lamp flickers', '--branch', 'lamp']
    expect(await text(...item, ...inProject)).toBe('1  issue  todo  The lamp flickers  lamp\n')
    expect(await text('platform', 'items', 'set', '1', '--status', 'done', '--branch', '', ...inProject)).toBe(
      '1  issue  done  The lamp flickers\n',
    )
    expect(await text('platform', 'items', 'list', ...inProject)).toBe('1  issue  done  The lamp flickers\n')

    const register = ['platform', 'sessions', 'add', '--kind', 'repair', '--work-item-id', '1', '--branch', 'fix']
    const registered = /^1 {2}session-\w{26} {2}repair {2}active {2}fix\n$/
    expect(await text(...register, ...inProject)).toMatch(registered)
    expect(await text('platform', 'sessions', 'list', ...inProject)).toMatch(registered)
    expect(await text('platform', 'sessions', 'close', '1', ...inProject)).toMatch(/ closed {2}fix\n$/)

    expect(await text('logout')).toBe('ada@example.org  logged out\n')
    expect(existsSync(session())).toBe(false)
  })

  test('what is no mem server is told so, and leaves the saved session alone', async () => {
    await mem(api(), ['login', '--email', 'ada@example.org'], { env: { MEM_PASSWORD: PASSWORD } })
    const saved = readFileSync(session(), 'utf8')
    let answer = ''
    const endpoint = await openServer((_, response) => response.end(answer))
    const env = { MEM_ENDPOINT: endpoint, MEM_PASSWORD: PASSWORD, MEM_SESSION_TOKEN: 'mst_x' }
    for (answer of ['{"token":"x"}', '[]', 'null', '<p>Hello</p>']) {
      for (const argv of [
        ['login', '--email', 'ada@example.org'],
        ['platform', 'users', 'list'],
      ]) {
        expect(await mem(api(), argv, { env })).toEqual({
          code: 4,
          stdout: '',
          stderr: expect.stringMatching(/^error: .* answers, but not as a mem server does.*\n {2}Check --endpoint/),
        })
      }
    }
    expect(readFileSync(session(), 'utf8')).toBe(saved)
    rmSync(session())
  })

  test('a session that cannot be kept is told, with what to do', async () => {
    const env = { MEM_PASSWORD: PASSWORD, HOME: '/dev/null' }
    const login = await mem(api(), ['login', '--email', 'ada@example.org'], { env })
    expect(login).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/the session cannot be kept: (ENOTDIR|EEXIST)[^]*Set HOME to a directory/),
    })
  })

  test('git-host#13 exit codes and what to do next', async () => {
    const token = { env: { MEM_SESSION_TOKEN: api().admin } }
    const expectFailure = async (argv: string[], code: number, stderr: RegExp, how = token): Promise<void> => {
      expect(await mem(api(), argv, how)).toEqual({ code, stdout: '', stderr: expect.stringMatching(stderr) })
    }
    await expectFailure(['whoami'], 2, /not logged in at http.*\n.*mem login/, { env: { MEM_SESSION_TOKEN: '' } })
    await expectFailure(['whoami', '--session-token', 'mst_x'], 2, /\(unauthorized\)\n.*mem login/)
    await expectFailure(['platform', 'projects', 'set', '99'], 8, /project 99 does not exist \(not_found\)/)
    await expectFailure(['platform', 'projects', 'add', '--name', 'page'], 4, /exists \(conflict\)/)
    await expectFailure(['platform', 'items', 'list'], 1, /--project/)
    await expectFailure(['platform', 'flags', 'set', 'feature_git_host'], 1, /--no-enabled/)
    await expectFailure(['login', '--email', 'ada@example.org'], 1, /--password-file/)
    await expectFailure(['login', '--email', 'ada@example.org', '--password-file', '/nowhere'], 4, /cannot read/)
    await expectFailure(['platform', 'users', 'add', '--email', 'x@example.org', '--password-file', '-'], 4, /is empty/)
    const elsewhere = { env: { MEM_SESSION_TOKEN: '', MEM_ENDPOINT: 'http://127.0.0.1:9' } }
    await mem(api(), ['login', '--email', 'ada@example.org'], { env: { MEM_PASSWORD: PASSWORD } })
    await expectFailure(['whoami'], 2, /the session of `mem login` is for http/, elsewhere)
    const slashed = { env: { MEM_SESSION_TOKEN: '', MEM_ENDPOINT: `${api().url}/` } }
    expect(await mem(api(), ['whoami'], slashed)).toMatchObject({ code: 0, stderr: '' })
    writeFileSync(session(), '{')
    await expectFailure(['whoami'], 4, /session\.json cannot be read/, { env: { MEM_SESSION_TOKEN: '' } })
    rmSync(session())
    const verbose = await mem(api(), ['whoami', '-v'], token)
    expect(verbose.stderr).toMatch(/^> GET .*\/rest\/v1\/platform\/me\n< 200 req_/)
    expect(verbose.stderr).not.toContain(api().admin)
  })
})

describeInPlaces('git-host#13 verbs on the store', (place) => {
  const run = (...argv: string[]): Promise<CliResult> => {
    ran.add(VERBS.find((name) => argv.join(' ').startsWith(name)) ?? '')
    return runCli(argv, { env: { HOME: place().directory, ...place().env, MEM_PASSWORD: PASSWORD } })
  }
  const organization = ['--organization', 'Acme', '--email', 'ada@example.org']

  test('git-host#13 init once, organizations, keys, schema', async () => {
    expect(await run('platform', 'orgs', 'list')).toMatchObject({ code: place().dialect === 'sqlite' ? 4 : 3 })
    const short = await runCli(['platform', 'init', ...organization, '--password-file', '-'], {
      env: { HOME: place().directory, ...place().env },
      stdin: 'short',
    })
    expect(short).toMatchObject({ code: 4, stderr: expect.stringContaining('12 characters') })
    expect(await run('platform', 'orgs', 'list')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('mem platform init'),
    })
    const made = await run('platform', 'init', ...organization)
    expect(made).toMatchObject({ code: 0, stdout: '1  organization  Acme\n1  admin  ada@example.org\n' })
    expect(statSync(join(place().directory, 'data/platform.key')).mode & 0o777).toBe(0o600)
    expect(await run('platform', 'init', ...organization)).toMatchObject({ code: 4, stdout: '' })
    const second = await run('platform', 'orgs', 'add', 'Sirius', '--email', 'bo@example.org')
    expect(second).toMatchObject({ code: 0, stdout: '2  organization  Sirius\n2  admin  bo@example.org\n' })
    expect(await run('platform', 'orgs', 'add', 'Twin', '--email', 'bo@example.org')).toMatchObject({ code: 4 })
    expect(await run('platform', 'orgs', 'list')).toMatchObject({ code: 0, stdout: '1  Acme\n2  Sirius\n' })
    expect(await run('platform', 'keys', 'rotate', '--prune')).toMatchObject({
      code: 0,
      stdout: 'k2  new key  0 sealed anew\nk1  dropped\n',
    })

    const status = await run('platform', 'migrate', 'status')
    expect(status).toMatchObject({ code: 0, stdout: expect.stringMatching(/^20261020010000 {2}core {2}20\d\d-/) })
    expect(await run('platform', 'migrate', 'down', '--to', '7', '--yes')).toMatchObject({ code: 1 })
    const unsure = await run('platform', 'migrate', 'down', '--to', '0')
    expect(unsure).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('Back up first') })
    const down = await run('platform', 'migrate', 'down', '--to', '0', '--yes')
    expect(down).toMatchObject({ code: 0, stdout: expect.stringContaining('20261020010000  reverted\n') })
    expect((await run('platform', 'migrate', 'status')).stdout).toMatch(/^20261020010000 {2}core {2}not applied\n/)
    expect((await run('platform', 'migrate', 'up')).stdout).toMatch(/^20261020010000 {2}core {2}20\d\d-/)
  })

  test('what lies in the store cannot be used: 78 and the setting', async () => {
    writeFileSync(join(place().directory, 'data/platform.key'), 'spoilt')
    expect(await run('platform', 'init', ...organization)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('platform.key_file'),
    })
    const broken = join(place().directory, 'broken')
    writeFileSync(broken, 'no database, and no directory either')
    const env = { HOME: place().directory, MEM_METADATA_DSN: broken }
    expect(await runCli(['platform', 'orgs', 'list'], { env })).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('storage.metadata_dsn'),
    })
  })
})

test('git-host#13 no verb was left out', () => {
  expect(VERBS.filter((verb) => !ran.has(verb))).toEqual([])
})
