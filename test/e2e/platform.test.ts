import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../support/program.ts'
import { startServer } from '../support/server.ts'

test('git-host#1 git-host#2 git-host#9 a person sets up the platform, logs in, rotates keys, and mistypes', async () => {
  const server = await startServer()
  const { directory } = server
  const mem = (args: string[], input = '') =>
    runProgram(args, { directory, input, env: { MEM_ENDPOINT: server.url, MEM_DATA_DIR: server.dataDir } })
  const expectOk = async (args: string[], input = ''): Promise<string> => {
    const { code, stdout, stderr } = await mem(args, input)
    expect({ args, code, stderr }).toMatchObject({ args, code: 0 })
    return stdout
  }
  writeFileSync(join(directory, 'password'), 'correct horse battery\n')
  const login = ['login', '--email', 'ada@example.org', '--password-file']
  const init = [
    'platform',
    'init',
    '--organization',
    'Acme',
    '--email',
    'ada@example.org',
    '--password-file',
    'password',
  ]

  expect(await mem([...login, 'password'])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('mem platform init'),
  })
  expect(await expectOk(init)).toBe('1  organization  Acme\n1  admin  ada@example.org\n')
  const keyFile = join(server.dataDir, 'platform.key')
  expect(statSync(keyFile).mode & 0o777).toBe(0o600)
  expect((await mem(init)).code).toBe(4)

  await expectOk([...login, 'password'])
  expect(await expectOk(['whoami'])).toBe('ada@example.org  admin  Acme\n')
  await expectOk(
    ['platform', 'users', 'add', '--email', 'bo@example.org', '--password-file', '-'],
    'another long password',
  )
  expect(await expectOk(['platform', 'users', 'list', '-q'])).toBe('1\n2\n')
  expect(await expectOk(['platform', 'keys', 'rotate', '--prune'])).toBe('k2  new key  0 sealed anew\nk1  dropped\n')
  expect(await expectOk(['whoami'])).toBe('ada@example.org  admin  Acme\n')
  await expectOk(['logout'])
  expect(existsSync(join(directory, '.mem/session.json'))).toBe(false)
  expect((await mem(['whoami'])).code).toBe(2)

  for (let i = 0; i < 10; i++) expect((await mem([...login, '-'], 'wrong horse')).code).toBe(2)
  const eleventh = await mem([...login, 'password'])
  expect(eleventh).toMatchObject({ code: 4, stderr: expect.stringContaining('(rate_limited)') })
  expect(server.output()).not.toMatch(/mst_[\w-]{43}|horse/)

  chmodSync(keyFile, 0o644)
  const refused = await mem(['serve', '--addr', '127.0.0.1:0'])
  expect(refused).toMatchObject({ code: 78, stderr: expect.stringContaining('0600') })
  await server.stop()
})
