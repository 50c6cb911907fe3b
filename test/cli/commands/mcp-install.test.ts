import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { runCli } from '../run-cli.ts'

let home: string
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'mem-test-install-'))))
afterEach(() => rmSync(home, { recursive: true, force: true }))

const install = (args: string[], more: Parameters<typeof runCli>[1] = {}) =>
  runCli(['mcp', 'install', ...args], { ...more, env: { HOME: home, MEM_DATA_DIR: '~/data', ...more.env } })
const cursor = (): string => join(home, '.cursor/mcp.json')
const read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'))
const keep = (file: string, text: string): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
const program = (...flags: string[]) => ({
  command: process.execPath,
  args: [join(packageRoot, 'bin/mem.js'), 'mcp', ...flags],
})

test('shows the configuration, and where it goes; without a terminal it asks nothing and writes nothing', async () => {
  const { code, stdout, stderr } = await install(['cursor'])
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({ mcpServers: { mem: program('--data-dir', join(home, 'data')) } })
  expect(stderr).toContain(cursor())
  expect(() => read(cursor())).toThrow('ENOENT')
})

test.each([
  ['y\n', true],
  ['Yes\n', true],
  ['n\n', false],
  ['\n', false],
])('on a terminal it asks; %j', async (stdin, writes) => {
  const { code, stderr } = await install(['cursor'], { stdin, isTTY: true })
  expect(code).toBe(0)
  expect(stderr).toContain(`Write this to ${cursor()}?`)
  expect(existsSync(cursor())).toBe(writes)
})

test('--yes writes, keeps what else is there, and changes nothing the second time', async () => {
  keep(cursor(), '{"mcpServers": {"other": {"url": "http://x"}, "mem": {"command": "old"}}, "theme": "dark"}')
  expect((await install(['cursor', '--yes'])).stderr).toContain(`written to ${cursor()}`)
  expect(read(cursor())).toEqual({
    mcpServers: { other: { url: 'http://x' }, mem: program('--data-dir', join(home, 'data')) },
    theme: 'dark',
  })
  expect((await install(['cursor', '--yes'])).stderr).toContain('already in')
})

test('--print never writes', async () => {
  await install(['cursor', '--print', '--yes'], { isTTY: true, stdin: 'y\n' })
  expect(() => read(cursor())).toThrow('ENOENT')
})

test('on a terminal it says that an entry is to be replaced, and shows the new one once', async () => {
  keep(cursor(), '{"mcpServers": {"mem": {"command": "old"}}}')
  const { stdout, stderr } = await install(['cursor'], { stdin: 'y\n', isTTY: true })
  expect([stdout, stderr.split('"command"').length]).toEqual(['', 2])
  expect(stderr).toContain('Replace the entry in')
  expect(read(cursor())).toEqual({ mcpServers: { mem: program('--data-dir', join(home, 'data')) } })
})

test.each(['{ // mine\n}', '{"mcpServers": []}', '{"mcpServers": "x"}', '[]', '"x"', 'null', '{', '{"a": 1,}'])(
  'the file %j is left alone',
  async (text) => {
    keep(cursor(), text)
    const { code, stderr } = await install(['cursor', '--yes'])
    expect([code, readFileSync(cursor(), 'utf8')]).toEqual([4, text])
    expect(stderr).toContain('not a plain JSON object')
    expect((await install(['cursor', '--print'])).code).toBe(0)
  },
)

test('a file that cannot be read or written is named', async () => {
  mkdirSync(cursor(), { recursive: true })
  expect(await install(['cursor', '--yes'])).toMatchObject({ code: 4, stderr: expect.stringContaining(cursor()) })
  keep(join(home, '.gemini'), 'a file where a directory should be')
  expect(await install(['gemini', '--yes'])).toMatchObject({ code: 4, stderr: expect.stringContaining('.gemini') })
})

test('a blank file, one with a byte order mark, indentation, access rights and links stay what they are', async () => {
  const kept = join(home, 'dotfiles.json')
  keep(kept, '\ufeff{\n\t"theme": "dark"\n}\n')
  chmodSync(kept, 0o600)
  mkdirSync(dirname(cursor()), { recursive: true })
  symlinkSync(kept, cursor())
  expect((await install(['cursor', '--yes'])).code).toBe(0)
  expect(lstatSync(cursor()).isSymbolicLink()).toBe(true)
  expect(statSync(kept).mode & 0o777).toBe(0o600)
  expect(readFileSync(kept, 'utf8')).toMatch(/^\{\n\t"theme": "dark",\n\t"mcpServers": \{\n/)
  keep(join(home, '.gemini/settings.json'), ' \n')
  expect((await install(['gemini', '--yes'])).code).toBe(0)
})

test('a configuration file is named by its whole path', async () => {
  keep(join(home, 'mem.yaml'), 'storage: { data_dir: /var/lib/mem }\n')
  const { stdout } = await install(['gemini', '--config', join(home, 'mem.yaml')], { env: { MEM_DATA_DIR: '' } })
  expect(JSON.parse(stdout).mcpServers.mem).toEqual(
    program('--config', join(home, 'mem.yaml'), '--data-dir', '/var/lib/mem'),
  )
})

const url = 'http://127.0.0.1:7777/mcp'
test.each([
  ['claude', { mcpServers: { mem: { type: 'http', url, headers: { Authorization: 'Bearer ${MEM_API_KEY}' } } } }],
  ['cursor', { mcpServers: { mem: { url, headers: { Authorization: 'Bearer ${env:MEM_API_KEY}' } } } }],
  ['vscode', { servers: { mem: { type: 'http', url, headers: { Authorization: 'Bearer ${env:MEM_API_KEY}' } } } }],
  ['windsurf', { mcpServers: { mem: { serverUrl: url, headers: { Authorization: 'Bearer ${env:MEM_API_KEY}' } } } }],
  ['gemini', { mcpServers: { mem: { httpUrl: url, headers: { Authorization: 'Bearer $MEM_API_KEY' } } } }],
])('%s connects to a keyed server, and the key stays in the environment', async (client, expected) => {
  const { stdout } = await install([client, '--url', url, '--print'], { env: { MEM_API_KEY: 'secret' } })
  expect(JSON.parse(stdout)).toEqual(expected)
})

test('claude-desktop starts programs only', async () => {
  expect((await install(['claude-desktop', '--url', url])).code).toBe(1)
  for (const bad of ['notaurl', 'ftp://x/mcp', 'http://']) {
    expect(await install(['cursor', '--url', bad])).toMatchObject({ code: 1, stdout: '' })
  }
  expect((await install(['claude-desktop'])).stderr).toContain('claude_desktop_config.json')
})

test('a key cannot be told to a program that a client starts', async () => {
  const { code, stderr } = await install(['cursor'], { env: { MEM_API_KEY: 'secret' } })
  expect(code).toBe(1)
  expect(stderr).toContain('--url')
})
