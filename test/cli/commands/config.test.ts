import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runCli } from '../run-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-cli-config-'))
afterAll(() => rmSync(directory, { recursive: true }))

const file = (name: string, content: string): string => {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}
const good = file(
  'good.yaml',
  'server:\n  addr: 127.0.0.1:9000\n  api_key: k-file\nembedding:\n  model: noop:default\n',
)
const bad = file('bad.yaml', 'server:\n  adress: 127.0.0.1:9000\n')

test.each(['text', 'yaml', 'json'])('print-config shows what is in force, without secrets, as %s', async (format) => {
  const env = { HOME: directory, MEM_SERVER_TIMEOUT: '5m', OPENAI_API_KEY: 'k-provider' }
  const { code, stdout } = await runCli(['print-config', '--config', good, '-o', format], { env })
  expect(code).toBe(0)
  expect(parse(stdout)).toMatchObject({
    server: { addr: '127.0.0.1:9000', api_key: '***', timeout: '5m' },
    embedding: { model: 'noop:default', fusion_weight: 0.05, providers: { openai: { api_key: '***' } } },
  })
  expect(stdout).not.toMatch(/k-file|k-provider/)
})

test('check-config says ok', async () => {
  const { code, stdout } = await runCli(['check-config', '--config', good], { env: { HOME: directory } })
  expect([code, stdout]).toEqual([0, 'config ok\n'])
})

test.each([
  ['an unknown key', ['--config', bad], {}, 'adress'],
  ['a missing file', ['--config', join(directory, 'none.yaml')], {}, 'none.yaml'],
  ['an open address without a key', [], { MEM_ADDR: ':7777' }, 'server.api_key'],
])('check-config refuses %s with 78', async (_, flags, env, says) => {
  const result = await runCli(['check-config', ...flags], { env: { HOME: directory, ...env } })
  expect(result).toMatchObject({ code: 78, stdout: '', stderr: expect.stringContaining(says) })
})

test('print-config refuses them as well', async () => {
  expect(await runCli(['print-config', '--config', bad], { env: { HOME: directory } })).toMatchObject({
    code: 78,
    stdout: '',
  })
})
