import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ConfigError } from '../../src/config/errors.ts'
import { loadConfig } from '../../src/config/load.ts'
import { readGatewayFiles } from '../../src/gateway/files.ts'
import { runCli } from '../cli/run-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-test-files-'))
afterAll(() => rmSync(directory, { recursive: true }))

const file = (name: string, text: string): string => {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

test('what `mem serve` would not start with is told by check-config, with the key', async () => {
  const none = join(directory, 'none')
  const empty = file('empty', ' \n')
  for (const [key, value, told] of [
    ['price_file', none, 'cannot be read'],
    ['price_file', file('text.yaml', 'just a text'), 'text.yaml: it must be an object'],
    ['price_file', file('list.yaml', 'models: [{provider: opnai}]'), 'list.yaml: models.0.provider must be one of'],
    ['prices', '[{provider: openai, model: m, usd_per_million: {input: -1}}]', 'usd_per_million.input must be USD'],
    ['ca_file', none, 'cannot be read'],
    ['ca_file', empty, 'holds no certificate'],
    ['metrics_token_file', none, 'cannot be read'],
    ['metrics_token_file', empty, 'is empty'],
    ['allowed_hosts', '[10.0.0.0/33]', 'must be host, host:port or a range'],
    ['allowed_hosts', '["http://models.internal"]', 'must be host, host:port or a range'],
  ] as const) {
    const yaml = file('mem.yaml', `gateway: {${key}: ${value}}`)
    const { code, stderr } = await runCli(['check-config', '--config', yaml])
    expect({ key, code, stderr }).toMatchObject({ code: 78, stderr: expect.stringContaining(told) })
    expect(stderr).toContain(`gateway.${key}`)
    expect(() => readGatewayFiles(loadConfig({ flags: { config: yaml }, env: {}, cwd: directory }))).toThrow(
      ConfigError,
    )
  }
  const hosts = '[localhost, "10.0.0.0/8", "fd00::/8", "::1", "[::1]:8000", models.internal:8000]'
  const good = file(
    'mem.yaml',
    `gateway: {allowed_hosts: ${hosts}, metrics_token_file: ${file('token', 'operator\n')}}`,
  )
  expect((await runCli(['check-config', '--config', good])).code).toBe(0)
  expect(readGatewayFiles(loadConfig({ flags: { config: good }, env: {}, cwd: directory }))).toMatchObject({
    ca: undefined,
    operatorToken: 'operator',
  })
})
