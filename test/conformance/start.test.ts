import { once } from 'node:events'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sha256 } from '../../src/base/hash.ts'
import { PAIRS } from '../config/pairs.ts'
import { makeWorkspace, type Workspace } from '../config/workspace.ts'
import { freePort } from '../support/ports.ts'
import { runProgram, spawnProgram } from '../support/program.ts'

interface Started {
  /** What it says it serves. */
  url: string
  output: () => string
  stop: () => Promise<number | null>
}

/** Runs `mem serve` until it serves; ends it with the test. */
async function serve(
  { directory }: Workspace,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<Started> {
  const child = spawnProgram(['serve', ...args], { directory, env })
  let output = ''
  const url = new Promise<string>((resolve, reject) => {
    const collect = (chunk: Buffer): void => {
      output += chunk.toString()
      const [, served] = /mem is serving (\S+),/.exec(output) ?? []
      if (served !== undefined) resolve(served)
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('close', (code) => reject(new Error(`exit ${code}: ${output}`)))
  })
  const stop = async (): Promise<number | null> => {
    const ended = child.exitCode === null ? once(child, 'close') : undefined
    child.kill()
    await ended
    return child.exitCode
  }
  onTestFinished(async () => void (await stop()))
  return { url: await url, output: () => output, stop }
}

/** What `mem serve` says when it leaves with 78, as it must. */
async function refusal(
  { directory }: Workspace,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<string> {
  const { code, stdout, stderr } = await runProgram(['serve', ...args], { directory, env })
  expect({ code, stdout, stderr }).toEqual({ code: 78, stdout: '', stderr })
  expect(stderr).not.toMatch(/\n\s+at /)
  return stderr
}

const statusOf = async (url: string, key?: string): Promise<number> =>
  (await fetch(`${url}/healthz`, { headers: key === undefined ? {} : { Authorization: `Bearer ${key}` } })).status

const reachable = (url: string): string => url.replace(/\/\/(\[::\]|0\.0\.0\.0)/, '//127.0.0.1')

describe('memory#126 start matrix', () => {
  test('memory#126 no key on a loopback bind: starts, warns, no bearer check', async () => {
    for (const addr of ['127.0.0.1:0', 'localhost:0', '[::1]:0', '127.3.4.5:0']) {
      const server = await serve(makeWorkspace(), ['--addr', addr])
      expect(await statusOf(server.url)).toBe(200)
      await expect.poll(server.output).toContain(`export MEM_ENDPOINT=${server.url}\n`)
      expect(server.output()).toMatch(/"level":"warn".*no API key/)
      expect(await server.stop()).toBe(0)
    }
  })

  test('memory#126 no key on another bind: refuses, exit 78', async () => {
    const workspace = makeWorkspace()
    for (const addr of [':7777', '0.0.0.0:0', '[::]:0', 'mem.example:0']) {
      expect(await refusal(workspace, ['--addr', addr])).toMatch(/server\.api_key is required/)
    }
    expect(await refusal(workspace, [], { MEM_ADDR: ':7777' })).toMatch(/server\.api_key/)
    workspace.write('mem.yaml', 'server: {addr: ":7777"}')
    expect(await refusal(workspace)).toMatch(/server\.api_key/)
  })

  test('memory#126 allow_no_auth: starts on any bind, warns', async () => {
    for (const addr of ['0.0.0.0:0', ':0']) {
      const server = await serve(makeWorkspace(), ['--addr', addr, '--allow-no-auth'])
      expect(await statusOf(reachable(server.url))).toBe(200)
      expect(server.output()).toMatch(/"level":"warn".*no API key/)
    }
    const server = await serve(makeWorkspace({ 'mem.yaml': 'server: {addr: "0.0.0.0:0", allow_no_auth: true}' }))
    expect(await statusOf(reachable(server.url))).toBe(200)
  })

  test('memory#126 with a key: starts on any bind, asks for it, does not warn', async () => {
    for (const addr of ['127.0.0.1:0', '0.0.0.0:0']) {
      const server = await serve(makeWorkspace(), ['--addr', addr], { MEM_API_KEY: 'k-matrix' })
      expect([await statusOf(reachable(server.url)), await statusOf(reachable(server.url), 'k-matrix')]).toEqual([
        401, 200,
      ])
      expect(server.output()).not.toContain('"level":"warn"')
    }
  })
})

test('a data directory that cannot be made: exit 78 naming its key', async () => {
  const workspace = makeWorkspace({ file: '' })
  expect(await refusal(workspace, ['--data-dir', 'file'])).toMatch(/storage\.data_dir .*file cannot be made/)
})

test('memory#127 key file 0600, 0640 accepted; 0644, 0660 refused with mode; both forms 78', async () => {
  const workspace = makeWorkspace({ 'mem.yaml': 'server: {addr: "127.0.0.1:0", api_key_file: ./key}' })
  const path = workspace.write('key', ' \n k-file\t\n', 0o600)
  for (const mode of [0o600, 0o640]) {
    chmodSync(path, mode)
    const server = await serve(workspace)
    expect([await statusOf(server.url), await statusOf(server.url, 'k-file')]).toEqual([401, 200])
    expect(server.output()).not.toContain('k-file')
    await server.stop()
  }
  for (const mode of [0o644, 0o660, 0o400, 0o604, 0o777]) {
    chmodSync(path, mode)
    expect(await refusal(workspace)).toMatch(new RegExp(`server\\.api_key_file .*0${mode.toString(8)}`))
  }
  chmodSync(path, 0o600)
  expect(await refusal(workspace, [], { MEM_API_KEY: 'k' })).toMatch(/server\.api_key.*server\.api_key_file/)
  expect(await refusal(workspace, ['--api-key', 'k'])).toMatch(/server\.api_key.*server\.api_key_file/)
  workspace.write('key', ' \n', 0o600)
  expect(await refusal(workspace)).toMatch(/server\.api_key_file .*empty/)
  workspace.write('mem.yaml', 'server: {api_key_file: ./absent}')
  expect(await refusal(workspace)).toMatch(/server\.api_key_file .*ENOENT/)
  workspace.write('mem.yaml', 'server: {api_key: k, api_key_file: ./key}')
  expect(await refusal(workspace)).toMatch(/server\.api_key/)
})

test('memory#128 search order; file < environment < flag; unknown key 78', async () => {
  const workspace = makeWorkspace({ 'mem.yaml': '', 'home-file': '' })
  const { directory, write } = workspace
  const shown = async (
    args: string[] = [],
    env: Record<string, string> = {},
  ): Promise<{ timeout: string; mode: string }> => {
    const { code, stdout } = await runProgram(['print-config', ...args, '-o', 'json'], { directory, env })
    expect(code).toBe(0)
    const { server }: { server: { timeout: string; mode: string } } = JSON.parse(stdout)
    return server
  }
  expect(await shown()).toMatchObject({ timeout: '30s', mode: 'single-tenant' })
  for (const [name, seconds] of [
    ['mem.yaml', 2],
    ['flag.yaml', 3],
    ['variable.yaml', 4],
  ]) {
    write(String(name), `server: {timeout: ${seconds}s}`)
  }
  // HOME of the program is its working directory.
  write('.mem/config.yaml', 'server: {timeout: 1s}')
  expect((await shown()).timeout).toBe('2s')
  expect((await shown(['--config', 'flag.yaml'])).timeout).toBe('3s')
  expect((await shown(['--config', 'flag.yaml'], { MEM_CONFIG: 'variable.yaml' })).timeout).toBe('4s')
  expect((await shown([], { MEM_SERVER_TIMEOUT: '5m' })).timeout).toBe('5m')
  expect(await refusal(workspace, ['--config', 'absent.yaml'])).toMatch(/absent\.yaml .*does not exist/)
  expect(await refusal(workspace, ['--config', 'flag.yaml'], { MEM_CONFIG: 'absent.yaml' })).toMatch(
    /absent\.yaml .*does not exist/,
  )

  write('mem.yaml', 'server: {addr: "127.0.0.1:1", api_key: k-file}\nstorage: {data_dir: ./from-file}')
  const env = { MEM_ADDR: '127.0.0.1:2', MEM_API_KEY: 'k-variable' }
  const server = await serve(workspace, ['--addr', '127.0.0.1:0'], env)
  expect([await statusOf(server.url, 'k-file'), await statusOf(server.url, 'k-variable')]).toEqual([401, 200])
  expect(server.output()).toContain('data in ./from-file')
  await server.stop()
  const flagged = await serve(
    workspace,
    ['--addr', '127.0.0.1:0', '--api-key', 'k-flag', '--data-dir', join(directory, 'd')],
    env,
  )
  expect([await statusOf(flagged.url, 'k-variable'), await statusOf(flagged.url, 'k-flag')]).toEqual([401, 200])
  await flagged.stop()

  const bad: [yaml: string, key: string | RegExp][] = [
    ['server: {adr: x}', /server\.adr.*server\.addr/],
    ['sever: {}', /sever.*server/],
    ['server: {tls: {cert: x}}', /server\.tls\.cert/],
    ['server: {addr: nowhere}', 'server.addr'],
    ['server: {timeout: soon}', 'server.timeout'],
    ['server: {timeout: 0}', 'server.timeout'],
    ['server: {mode: many}', 'server.mode'],
    ['server: {allowed_origins: ["no origin"]}', 'server.allowed_origins'],
    ['storage: {metadata_driver: oracle}', 'storage.metadata_driver'],
    ['storage: {metadata_driver: postgres}', 'storage.metadata_dsn'],
    ['storage: {vector_driver: pgvector}', 'storage.vector_dsn'],
    ['storage: {ledger_driver: postgres}', 'storage.ledger_dsn'],
    ['storage: {metadata_driver: postgres, metadata_dsn: "mysql://x"}', 'storage.metadata_dsn'],
    ['storage: {metadata_dsn: "postgres://x/y"}', 'storage.metadata_dsn'],
    [
      'storage: {metadata_driver: postgres, metadata_dsn: "postgres://u:hunter2@127.0.0.1:1/x"}',
      /storage\.metadata_dsn(?![^]*hunter2)/,
    ],
    ['storage: {metadata_dsn: /dev/null/mem.db}', 'storage.metadata_dsn'],
    ['embedding: {model: "cohere:x"}', 'embedding.model'],
    ['embedding: {batch_size: 0}', 'embedding.batch_size'],
    ['limits: {workspaces: -1}', 'limits.workspaces'],
    ['limits: {workspaces: 1.5}', 'limits.workspaces'],
    ['telemetry: {log_level: loud}', 'telemetry.log_level'],
    ['- a list', 'mem.yaml'],
    ['server: {', 'mem.yaml'],
  ]
  for (const [yaml, key] of bad) {
    write('mem.yaml', yaml)
    expect(await refusal(workspace, ['--addr', '127.0.0.1:0'].slice(0, yaml.includes('addr') ? 0 : 2))).toMatch(
      typeof key === 'string' ? new RegExp(key.replaceAll('.', '\\.')) : key,
    )
  }
  write('mem.yaml', '')
  expect(await refusal(workspace, [], { MEM_MCP_ENABLE: 'perhaps' })).toMatch(/MEM_MCP_ENABLE/)
  const busy = createServer().listen(await freePort(), '127.0.0.1')
  onTestFinished(() => void busy.close())
  await once(busy, 'listening')
  const address = busy.address()
  const port = typeof address === 'object' ? address?.port : undefined
  expect(await refusal(workspace, ['--addr', `127.0.0.1:${port}`])).toMatch(/server\.addr|cannot listen/)
})

describe('memory#129 TLS', () => {
  const withPair = (addr = '127.0.0.1:0'): Workspace => {
    const workspace = makeWorkspace({ 'tls.crt': PAIRS.a.cert, 'other.crt': PAIRS.b.cert })
    workspace.write('tls.key', PAIRS.a.key, 0o600)
    workspace.write(
      'mem.yaml',
      `server: {addr: "${addr}", api_key: k, tls: {enabled: true, cert_file: ./tls.crt, key_file: ./tls.key}}`,
    )
    return workspace
  }
  /** Status of a request over HTTPS, and the certificate that was met; `ca` also trusts it. */
  const httpsGet = async (url: string, ca?: string): Promise<{ status?: number; fingerprint: string }> => {
    const trust = ca === undefined ? { rejectUnauthorized: false } : { ca }
    const headers = { Authorization: 'Bearer k' }
    const asked = request(`${url.replace('127.0.0.1', 'localhost')}/healthz`, { ...trust, headers, agent: false })
    asked.end()
    const [response] = await once(asked, 'response')
    const fingerprint: string = response.socket.getPeerCertificate().fingerprint256
    await text(response)
    return { status: response.statusCode, fingerprint }
  }

  test('memory#129 pair; loose key and self-signed beyond loopback warn', async () => {
    const workspace = withPair()
    const server = await serve(workspace)
    expect(server.url).toMatch(/^https:/)
    expect((await httpsGet(server.url, PAIRS.a.cert)).status).toBe(200)
    expect(server.output()).not.toContain('"level":"warn"')
    await server.stop()
    chmodSync(join(workspace.directory, 'tls.key'), 0o644)
    const loose = await serve(workspace)
    expect(loose.output()).toMatch(/"level":"warn".*tls\.key.*0644/)
    const open = await serve(withPair('0.0.0.0:0'))
    expect(open.output()).toMatch(/"level":"warn".*self-signed/)
  })

  test('memory#129 self-signed: made once, kept over a restart', async () => {
    const yaml = 'server: {addr: "127.0.0.1:0", api_key: k, tls: {enabled: true, auto_self_signed: true}}'
    const workspace = makeWorkspace({ 'mem.yaml': yaml })
    const met: string[] = []
    for (let start = 0; start < 2; start++) {
      const server = await serve(workspace)
      expect(server.url).toMatch(/^https:/)
      const { status, fingerprint } = await httpsGet(server.url)
      expect(status).toBe(200)
      met.push(fingerprint)
      await server.stop()
    }
    expect(met[1]).toBe(met[0])
    const modes = readdirSync(join(workspace.directory, 'data/tls')).map((name) => {
      const { mode } = statSync(join(workspace.directory, 'data/tls', name))
      return [name.split('.').at(-1), mode & 0o777]
    })
    expect(Object.fromEntries(modes)).toMatchObject({ key: 0o600 })
  })

  test('memory#129 no pair, unreadable or unequal pair: 78', async () => {
    const workspace = withPair()
    const bad: [tls: string, says: RegExp][] = [
      ['enabled: true', /server\.tls\.cert_file/],
      ['enabled: true, cert_file: ./tls.crt', /server\.tls\.key_file/],
      ['enabled: true, key_file: ./tls.key', /server\.tls\.cert_file/],
      ['enabled: true, cert_file: ./absent.crt, key_file: ./tls.key', /server\.tls\.cert_file .*ENOENT/],
      ['enabled: true, cert_file: ./tls.key, key_file: ./tls.key', /server\.tls\.cert_file/],
      ['enabled: true, cert_file: ./other.crt, key_file: ./tls.key', /server\.tls\.cert_file/],
    ]
    for (const [tls, says] of bad) {
      workspace.write('mem.yaml', `server: {addr: "127.0.0.1:0", tls: {${tls}}}`)
      expect(await refusal(workspace)).toMatch(says)
    }
    workspace.write('mem.yaml', 'server: {addr: "127.0.0.1:0", tls: {cert_file: ./absent.crt}}')
    expect((await serve(workspace)).url).toMatch(/^http:/)
  })
})

test('memory#130 print-config hides secrets; log shows the key tag', async () => {
  const yaml = [
    'server: {addr: "127.0.0.1:0", api_key: secret-one}',
    'storage: {metadata_driver: postgres, metadata_dsn: "postgres://user:secret-two@db.example/mem"}',
    'embedding: {api_key: secret-three, base_url: "https://u:secret-six@models.example"}',
  ]
  const { directory, write, ...workspace } = makeWorkspace({ 'mem.yaml': yaml.join('\n') })
  const env = {
    OPENAI_API_KEY: 'secret-four',
    VOYAGE_API_KEY: 'secret-five',
    MEM_CONTENT_DSN: 's3://key:secret-seven@b',
  }
  for (const format of ['text', 'json', 'yaml', 'jsonl']) {
    const { code, stdout, stderr } = await runProgram(['print-config', '-o', format], { directory, env })
    expect(code).toBe(0)
    expect(stdout + stderr).not.toContain('secret-')
    for (const kept of ['***', 'postgres://user:***@db.example/mem', 'fusion_weight']) expect(stdout).toContain(kept)
  }
  const checked = await runProgram(['check-config'], { directory, env })
  expect(checked).toEqual({ code: 0, stdout: 'config ok\n', stderr: '' })

  write('mem.yaml', 'server: {addr: "127.0.0.1:0", api_key: secret-one}')
  const server = await serve({ directory, write, ...workspace })
  expect(await statusOf(server.url, 'secret-one')).toBe(200)
  await expect.poll(() => server.output()).toContain(`"api_key_tag":"${sha256('secret-one').slice(0, 8)}"`)
  expect(server.output()).not.toContain('secret-one')
})
