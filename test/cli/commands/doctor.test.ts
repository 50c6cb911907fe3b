import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Finding } from '../../../src/cli/finding.ts'
import { writePair } from '../../../src/config/certificates.ts'
import { createPair } from '../../../src/config/self-sign.ts'
import { SqliteDriver } from '../../../src/database/sqlite-driver.ts'
import { newSqliteStore } from '../../../src/kernel/store/store.ts'
import { startMemoryApi } from '../../support/memory-api.ts'
import { freePort } from '../../support/ports.ts'
import { runCli } from '../run-cli.ts'

let directory: string
let addr: string
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'mem-cli-doctor-'))
  addr = `127.0.0.1:${await freePort()}`
})
afterEach(() => rmSync(directory, { recursive: true }))

/** Findings by what was checked: `state message`, and the exit code. */
async function doctor(env: Record<string, string> = {}) {
  const data = { HOME: directory, MEM_DATA_DIR: join(directory, 'data'), MEM_ADDR: addr }
  const { code, stdout, stderr } = await runCli(['doctor', '-o', 'json'], { env: { ...data, ...env } })
  const { findings = [] }: { findings?: Finding[] } = stdout === '' ? {} : JSON.parse(stdout)
  const found = Object.fromEntries(findings.map(({ check, state, message }) => [check, `${state} ${message}`]))
  return { code, stderr, found, findings }
}

test('a fresh machine is well, and nothing is made on it', async () => {
  const { code, found } = await doctor()
  expect({ code, found }).toEqual({
    code: 0,
    found: {
      configuration: expect.stringMatching(/^warning no API key/),
      'data directory': expect.stringMatching(/^ok .* GiB free$/),
      'metadata, vector, graph, ledger': expect.stringMatching(/^ok sqlite .*mem\.db, made at the first start$/),
      platform: 'ok no organization yet: `mem platform init` makes the first',
      'model hash:default': 'ok gives vectors of 1024 values; lexical: it finds words, not synonyms',
      'kernel store': expect.stringMatching(/^ok sqlite .*kernel\.db, made at the first start$/),
      'kernel model': 'ok none: runs of agents stay queued',
      'kernel skills': expect.stringMatching(/^ok none: there is no .*skills$/),
      'kernel credentials': expect.stringMatching(/^ok none: there is no .*kernel-context\.yaml$/),
      server: `ok not running on http://${addr}`,
    },
  })
  expect(existsSync(join(directory, 'data'))).toBe(false)
})

test('a running server is found ready, with its key', async () => {
  const env = { MEM_API_KEY: 'k' }
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: directory, env })
  const running = { ...env, MEM_DATA_DIR: directory, MEM_ADDR: new URL(api.url).host }
  const { code, found } = await doctor(running)
  expect([code, found['server']]).toEqual([0, `ok ${api.url} is ready`])
  expect(found['metadata, vector, graph, ledger']).toMatch(/mem\.db answers$/)
  const wrong = await doctor({ ...running, MEM_API_KEY: 'other' })
  expect([wrong.code, wrong.found['server']]).toEqual([0, expect.stringContaining('warning')])
  await api.stop()
})

test('a server whose certificate is not trusted here is told with what to do', async () => {
  const { certFile, keyFile } = writePair(directory, await createPair({ host: '127.0.0.1', now: Date.now() }))
  const [host = '', port = ''] = addr.split(':')
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }).listen(Number(port), host)
  await once(server, 'listening')
  const config = join(directory, 'tls.yaml')
  writeFileSync(config, `server: {tls: {enabled: true, cert_file: ${certFile}, key_file: ${keyFile}}}`)
  const { findings } = await doctor({ MEM_CONFIG: config })
  expect(findings.find(({ check }) => check === 'server')).toMatchObject({
    state: 'warning',
    fix: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
  })
  server.close()
})

test('what does not answer is named, with what to do, and no password', async () => {
  const { code, stderr, found, findings } = await doctor({
    MEM_METADATA_DRIVER: 'postgres',
    MEM_METADATA_DSN: 'postgres://u:secret@127.0.0.1:1/x',
    MEM_EMBEDDING_MODEL: 'openai:text-embedding-3-small',
    MEM_LEDGER_DRIVER: 'file',
  })
  expect([code, stderr]).toEqual([4, 'error: 2 checks failed\n'])
  expect(found['metadata']).toMatch(/^failed postgres postgres:\/\/u:\*\*\*@127\.0\.0\.1:1\/x: /)
  expect(found['ledger']).toMatch(/^ok file .*ledger\.jsonl/)
  expect(found['model openai:text-embedding-3-small']).toContain('OPENAI_API_KEY')
  expect(findings.filter(({ state, fix }) => state === 'failed' && fix === undefined)).toEqual([])
  expect(JSON.stringify(findings)).not.toContain('secret')
})

test('of the kernel: its store, its model, skills and credentials that cannot be used, and no value', async () => {
  const data = join(directory, 'data')
  const store = await newSqliteStore(join(data, 'kernel.db'))
  await store.close()
  mkdirSync(join(data, 'skills'))
  writeFileSync(join(data, 'skills/broken.yaml'), 'id: broken\n')
  writeFileSync(join(directory, 'mem.yaml'), '{}')
  writeFileSync(join(directory, 'open.token'), 'secret-of-the-desk', { mode: 0o600 })
  const scope = { kind: 'local', id: 'default' }
  const credential = { scope, kind: 'bearer', displayName: 'Desk' }
  const credentials = [
    { ...credential, id: 'open', file: 'open.token' },
    { ...credential, id: 'unset', env: 'DESK_TOKEN' },
    { ...credential, id: 'there', env: 'OTHER_TOKEN' },
  ]
  const context = { apiVersion: 'kernel/v1alpha1', kind: 'StandaloneContext', credentials }
  writeFileSync(join(directory, 'kernel-context.yaml'), JSON.stringify(context))
  const { code, found, findings } = await doctor({
    MEM_CONFIG: join(directory, 'mem.yaml'),
    OTHER_TOKEN: 'secret-of-another',
    KERNEL_MODEL_BASE_URL: 'http://127.0.0.1:1/v1',
    KERNEL_MODEL_NAME: 'small',
    KERNEL_MODEL_API_KEY: 'secret-of-the-model',
  })
  expect(code).toBe(0)
  expect(found['kernel store']).toMatch(/^ok sqlite .*kernel\.db answers, schema 2026\d+$/)
  expect(found['kernel model']).toBe('ok small at http://127.0.0.1:1/v1')
  expect(found['kernel skills']).toMatch(/^warning broken\.yaml: /)
  expect(found['kernel credentials']).toMatch(/^warning .*DESK_TOKEN is not set/)
  expect(JSON.stringify(findings)).not.toContain('secret')

  chmodSync(join(directory, 'open.token'), 0o644)
  const open = await doctor({ MEM_CONFIG: join(directory, 'mem.yaml') })
  expect(open.code).toBe(4)
  expect(open.found['kernel credentials']).toMatch(/^failed .*open\.token may be read by others/)

  const file = openSync(join(data, 'kernel.db'), 'r+')
  const PAGE = 4096
  writeSync(file, Buffer.alloc(PAGE, 'damage'), 0, PAGE, fstatSync(file).size - PAGE)
  closeSync(file)
  const damaged = await doctor({ MEM_CONFIG: join(directory, 'mem.yaml') })
  expect(damaged.found['kernel store']).toMatch(/^failed .*it is damaged/)

  writeFileSync(join(data, 'kernel.db'), 'this is no database, and long enough to be taken for one'.repeat(20))
  writeFileSync(join(directory, 'kernel-context.yaml'), '{}')
  const broken = await doctor({ MEM_CONFIG: join(directory, 'mem.yaml') })
  expect([broken.code, broken.found['kernel store']]).toEqual([4, expect.stringMatching(/^failed .*not a database/)])
  expect(broken.found['kernel credentials']).toMatch(/^failed .*kernel-context\.yaml: apiVersion/)
})

test('of the platform: a schema of a newer program, a key file that is open, another, gone', async () => {
  const data = join(directory, 'data')
  writeFileSync(join(directory, 'password'), 'a long enough password')
  const words = ['--organization', 'Acme', '--email', 'ada@example.org', '--password-file', join(directory, 'password')]
  await runCli(['platform', 'init', ...words, '--data-dir', data], { env: { HOME: directory } })
  const key = join(data, 'platform.key')
  const platform = async () => {
    const { code, found } = await doctor()
    return `${code} ${found['platform']}`
  }
  expect(await platform()).toBe(`0 ok its secrets are sealed with ${key}`)
  chmodSync(key, 0o644)
  expect(await platform()).toMatch(/^4 failed .*must have 0600/)
  chmodSync(key, 0o600)
  writeFileSync(key, '{}')
  expect(await platform()).toMatch(/^4 failed .*platform\.key cannot be used: it must hold/)
  rmSync(key)
  expect(await platform()).toMatch(/^4 failed .*platform\.key cannot be used: ENOENT/)
  const database = new SqliteDriver(join(data, 'mem.db'))
  database.exec(
    `INSERT INTO platform_schema_migrations
     SELECT service, 99990101000000, 'future', checksum, applied_at FROM platform_schema_migrations LIMIT 1`,
  )
  database.close()
  expect(await platform()).toMatch(/^4 failed .*the platform schema is at version 9999.*upgrade mem/)
})

test('a file that is no database fails', async () => {
  writeFileSync(join(directory, 'mem.db'), 'this is no database, and long enough to be taken for one'.repeat(20))
  const { code, found } = await doctor({ MEM_DATA_DIR: directory })
  expect([code, found['metadata, vector, graph, ledger']]).toEqual([
    4,
    expect.stringMatching(/^failed .*not a database/),
  ])
})

test('a schema of a newer program fails, and a damaged file is told in words', async () => {
  const data = join(directory, 'data')
  await (await startMemoryApi({ dialect: 'sqlite', dataDir: data })).stop()
  expect((await doctor()).code).toBe(0)
  const database = new SqliteDriver(join(data, 'mem.db'))
  database.exec(
    `INSERT INTO schema_migrations SELECT service, 9999, 'future', checksum, applied_at FROM schema_migrations LIMIT 1`,
  )
  database.close()
  const { code, found } = await doctor()
  expect([code, found['metadata, vector, graph, ledger']]).toEqual([
    4,
    expect.stringMatching(/^failed .*version 9999 .*upgrade mem/),
  ])
  writeFileSync(join(data, 'mem.db'), 'this is no database, and long enough to be taken for one'.repeat(20))
  const env = { HOME: directory, MEM_DATA_DIR: data }
  const { stderr } = await runCli(['backup', 'create', join(directory, 'copy')], { env })
  expect(stderr).toContain('mem.db is damaged: file is not a database')
})

test('a certificate near its end is told, one past it fails', async () => {
  const env = { MEM_CONFIG: join(directory, 'mem.yaml'), MEM_API_KEY: 'k' }
  const start = async (days: number) => {
    const pair = await createPair({ host: 'localhost', now: Date.now() - days * 86_400_000 })
    const { certFile, keyFile } = writePair(directory, pair)
    const tls = { enabled: true, cert_file: certFile, key_file: keyFile }
    writeFileSync(env.MEM_CONFIG, JSON.stringify({ server: { tls } }))
    const { code, found } = await doctor(env)
    return [code, found['certificate']?.split(' ', 1)[0]]
  }
  expect(await start(0)).toEqual([0, 'ok'])
  expect(await start(340)).toEqual([0, 'warning'])
  expect(await start(366)).toEqual([4, 'failed'])
})

test.skipIf(process.getuid?.() === 0)('a data directory that cannot be written fails (not as root)', async () => {
  chmodSync(directory, 0o500)
  expect((await doctor()).code).toBe(4)
  chmodSync(directory, 0o700)
})

test('a configuration that cannot be used is 78', async () => {
  expect(await doctor({ MEM_ADDR: 'nonsense' })).toMatchObject({ code: 78, findings: [] })
})
