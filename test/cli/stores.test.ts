import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { runCli } from './run-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-cli-stores-'))
afterAll(() => rmSync(directory, { recursive: true }))

test('a database that cannot be looked at is not one that there is none of', async () => {
  const list = ['platform', 'orgs', 'list', '--data-dir', directory]
  const env = { HOME: directory }
  expect(await runCli(list, { env })).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('there is no database'),
  })
  symlinkSync('mem.db', join(directory, 'mem.db'))
  expect(await runCli(list, { env })).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/mem\.db cannot be read: ELOOP.*\n.*user of the server/),
  })
})
