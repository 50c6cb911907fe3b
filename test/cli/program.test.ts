import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { SECTIONS } from '../../src/cli/table.ts'
import { startRecordingServer, type RecordingServer } from '../client/recording-server.ts'
import { runCli } from './run-cli.ts'

let server: RecordingServer
let env: Record<string, string>

beforeAll(async () => {
  server = await startRecordingServer()
  env = { MEM_ENDPOINT: server.endpoint, MEM_WORKSPACE: 'ws_env' }
})
afterAll(() => server.close())
beforeEach(() => {
  server.requests.length = 0
  server.replies.length = 0
})

const memories = {
  memories: [
    { id: 'mem_1', content: 'one', tags: { a: 'b' } },
    { id: 'mem_2', content: 'two' },
  ],
  next_cursor: 'c2',
}
const COMMANDS = Object.values(SECTIONS).flatMap(Object.keys)

describe('global flags', () => {
  const given = ['-w', 'ws_flag', '--agent-id', 'agent_flag', '--api-key', 'k-flag', '-o', 'json', '--timeout', '5m']
  test.each([
    ['before the noun', [...given, 'tags', 'delete', 'mem_1', 'a']],
    ['before the verb', ['tags', ...given, 'delete', 'mem_1', 'a']],
    ['behind the verb', ['tags', 'delete', ...given, 'mem_1', 'a']],
    ['at the end', ['tags', 'delete', 'mem_1', 'a', ...given]],
    ['everywhere, the last wins', ['-w', 'ws_x', 'tags', '-w', 'ws_y', 'delete', 'mem_1', 'a', ...given]],
  ])('%s', async (_, argv) => {
    server.replies.push({ status: 204 })
    expect(await runCli(argv, { env })).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(server.requests[0]).toMatchObject({
      url: '/v1/workspaces/ws_flag/memories/mem_1/tags/a',
      headers: { 'mem-agent-id': 'agent_flag', authorization: 'Bearer k-flag', 'x-mem-workspace': 'ws_flag' },
    })
  })

  test('come from the environment where no flag says otherwise', async () => {
    const variables = { ...env, MEM_AGENT_ID: 'agent_env', MEM_API_KEY: 'k-env', MEM_OUTPUT: 'jsonl' }
    server.replies.push({ body: memories })
    const { stdout } = await runCli(['list', '-q'], { env: variables })
    expect(stdout).toBe(memories.memories.map((memory) => `${JSON.stringify(memory)}\n`).join(''))
    expect(server.requests[0]).toMatchObject({
      url: '/v1/workspaces/ws_env/memories?limit=50',
      headers: { 'mem-agent-id': 'agent_env', authorization: 'Bearer k-env' },
    })
  })

  test("a verb's own flag of the same name wins behind the verb", async () => {
    await runCli(['agents', 'show', '--agent-id', 'agent_b'], { env })
    await runCli(['agents', '--agent-id', 'agent_a', 'show'], { env })
    expect(server.requests.map(({ url, headers }) => [url, headers['mem-agent-id']])).toEqual([
      ['/v1/workspaces/ws_env/agents/agent_b', 'agent_opaque_local'],
      ['/v1/workspaces/ws_env/agents/agent_a', 'agent_a'],
    ])
  })

  test('no provider is ever sent', async () => {
    await runCli(['list'], { env })
    expect(server.requests[0]?.headers).not.toHaveProperty('mem-identity-provider')
  })
})

describe('output', () => {
  const list = async (...argv: string[]) => {
    server.replies.push({ body: memories })
    return runCli(['list', ...argv], { env })
  }

  test('text: short lines, the next page as a remark', async () => {
    expect(await list()).toEqual({ code: 0, stdout: 'mem_1  one  a=b\nmem_2  two\n', stderr: 'more: --cursor c2\n' })
  })

  test('--quiet: ids', async () => {
    expect(await list('--quiet')).toEqual({ code: 0, stdout: 'mem_1\nmem_2\n', stderr: '' })
  })

  test('json and yaml: the REST answer', async () => {
    expect(JSON.parse((await list('-o', 'json')).stdout)).toEqual(memories)
    expect(parse((await list('-o', 'yaml')).stdout)).toEqual(memories)
  })

  test('jsonl: an item a line', async () => {
    const { stdout } = await list('-o', 'jsonl')
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(memories.memories)
  })

  test('jsonl of a single answer is one line', async () => {
    server.replies.push({ body: memories.memories[0] })
    expect((await runCli(['lookup', 'mem_1', '-o', 'jsonl'], { env })).stdout).toBe(
      `${JSON.stringify(memories.memories[0])}\n`,
    )
  })

  test('stored control characters stay out of lines', async () => {
    server.replies.push({ body: { memories: [{ id: 'mem_1', content: 'a\x1b[2J\tb\nc' }] } })
    expect((await runCli(['list'], { env })).stdout).toBe('mem_1  a [2J b c\n')
  })

  test('--verbose tells requests, ids and times on stderr, but no key', async () => {
    server.replies.push({ body: memories })
    const { stdout, stderr } = await runCli(['list', '-v', '--api-key', 'k-secret'], { env })
    expect(stdout).toBe('mem_1  one  a=b\nmem_2  two\n')
    expect(stderr).toMatch(
      /^> GET http:\/\/127\.0\.0\.1:\d+\/v1\/workspaces\/ws_env\/memories\?limit=50\n< 200 req_test \d+ ms\n/,
    )
    expect(stderr).not.toContain('k-secret')
  })

  test('colours on a terminal only, and not where they are refused', async () => {
    const colored = async (argv: string[], more: Record<string, string> = {}) => {
      server.replies.push({ body: memories })
      return (await runCli(['list', ...argv], { env: { ...env, ...more }, isTTY: true })).stdout.includes('\x1b')
    }
    expect(await colored([])).toBe(true)
    expect(await colored(['--no-color'])).toBe(false)
    expect(await colored([], { NO_COLOR: '1' })).toBe(false)
    expect((await list()).stdout).not.toContain('\x1b')
  })
})

describe('exit codes', () => {
  const envelope = (error_code: string) => ({ error_code, message: `what happened`, details: {} })
  test.each([
    [401, 'unauthorized', 2, '--api-key'],
    [500, 'internal_error', 3, 'log'],
    [501, 'capability_unavailable', 3, 'print-config'],
    [400, 'invalid_input', 4, ''],
    [409, 'already_exists', 4, ''],
    [429, 'quota_exceeded', 4, 'limits'],
    [412, 'cas_conflict', 5, 'lookup'],
    [404, 'not_found', 8, 'list'],
  ])('HTTP %i %s: %i', async (status, code, exit, hint) => {
    server.replies.push({ status, body: envelope(code) })
    const result = await runCli(['graph', 'stats'], { env })
    expect(result).toMatchObject({ code: exit, stdout: '' })
    const [happened, next] = result.stderr.split('\n')
    expect(happened).toBe(`error: what happened (${code})`)
    expect(next).toContain(hint)
  })

  test('a path that the server has not is a matter of the endpoint', async () => {
    const details = { resource: 'path', id: '/v1/healthz' }
    server.replies.push({ status: 404, body: { ...envelope('not_found'), details } })
    const result = await runCli(['health'], { env })
    expect(result).toMatchObject({ code: 8, stderr: expect.stringContaining('Check --endpoint') })
  })

  test("a proxy's error page", async () => {
    server.replies.push({ status: 502, body: '<html>' })
    const result = await runCli(['health'], { env })
    expect(result).toMatchObject({ code: 3, stderr: expect.stringContaining('HTTP status 502') })
  })

  test.each([
    ['an unknown command, with a guess', ['imprnt'], 'Did you mean imprint'],
    ['help about an unknown command', ['help', 'imprnt'], 'Did you mean imprint'],
    ['an unknown verb', ['workspaces', 'crate'], 'Did you mean create'],
    ['a verb that a noun with a verb of its own has not', ['gateway', 'crate'], "unknown command 'crate'"],
    ['an unknown flag', ['list', '--colection', 'x'], 'Did you mean --collection'],
    ['a missing argument', ['lookup'], "missing required argument 'mem'"],
    ['too many arguments', ['lookup', 'mem_1', 'mem_2'], 'too many arguments'],
    ['a missing flag', ['workspaces', 'create'], '--name'],
    ['a flag without value', ['list', '--limit'], 'argument missing'],
    ['no whole number', ['recall', 'q', '--k', '1.5'], 'whole number'],
    ['a number too large to count', ['recall', 'q', '--k', '9'.repeat(20)], '9007199254740991 at most'],
    ['an unknown choice', ['recall', 'q', '--mode', 'magic'], 'hybrid, keyword, vector, lookup'],
    ['an unknown choice of a list', ['traverse', 'mem_1', '--types', 'references,likes'], "'likes'"],
    ['an unknown format', ['list', '-o', 'xml'], 'text, json, jsonl, yaml'],
    ['no duration', ['list', '--timeout', 'soon'], 'no duration'],
    ['a duration of nothing', ['list', '--timeout', '0'], 'no duration'],
    ['no agent', ['agents', 'deactivate'], 'which agent'],
    ['an address that is none', ['health', '--endpoint', 'localhost:7777'], 'must be a URL'],
    ['a path that would mean something else', ['forget', '..'], 'cannot name anything'],
    ['a noun without verb', ['workspaces'], 'Usage: mem workspaces'],
    ['nothing', [], 'Usage: mem'],
  ])('1 for %s', async (_, argv, says) => {
    const result = await runCli(argv, { env })
    expect(result).toMatchObject({ code: 1, stdout: '' })
    expect(result.stderr).toContain(says)
    expect(server.requests).toEqual([])
  })

  test('no stack for a mistake, even with --verbose; one for a fault of ours', async () => {
    expect((await runCli(['lookup', '-v'], { env })).stderr).not.toMatch(/^\s+at /m)
    server.replies.push({ body: { memories: [null] } }, { body: { memories: [null] } })
    const silent = await runCli(['list'], { env })
    const verbose = await runCli(['list', '-v'], { env })
    expect([silent.code, verbose.code]).toEqual([4, 4])
    expect(silent.stderr).not.toMatch(/^\s+at /m)
    expect(verbose.stderr).toMatch(/^\s+at /m)
  })

  test('1 without a workspace, telling how to get one', async () => {
    const result = await runCli(['list'], { env: { MEM_ENDPOINT: server.endpoint } })
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('workspaces create') })
  })

  test('1 for a format of the environment that is none', async () => {
    const result = await runCli(['list'], { env: { ...env, MEM_OUTPUT: 'xml' } })
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('MEM_OUTPUT') })
  })

  test('4 when nobody listens, telling how to start a server', async () => {
    const gone = await startRecordingServer()
    await gone.close()
    const result = await runCli(['health', '--endpoint', gone.endpoint], { env })
    expect(result).toMatchObject({ code: 4, stderr: expect.stringContaining('mem serve') })
  })

  test('4 when the server takes too long', async () => {
    const hanging: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    const real = globalThis.fetch
    globalThis.fetch = hanging
    const result = await runCli(['health', '--timeout', '10ms'], { env })
    globalThis.fetch = real
    expect(result).toMatchObject({ code: 4, stderr: expect.stringContaining('did not answer within 0.01 s') })
  })
})

test('version and help take --config as every verb of the server does', async () => {
  expect(await runCli(['version', '--config', 'none.yaml'])).toMatchObject({ code: 0, stderr: '' })
  const help = await runCli(['help', '--config', 'none.yaml', 'serve'])
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: mem serve') })
})

describe('help', () => {
  test('of the program names every command and shows a beginning', async () => {
    const { code, stdout, stderr } = await runCli(['--help'])
    expect([code, stderr]).toEqual([0, ''])
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command.split(' ')[0]} `, 'm'))
    expect(stdout).toContain('mem serve')
  })

  test.each(COMMANDS)('of %s has an example that begins so', async (command) => {
    const { code, stdout } = await runCli([...command.split(' '), '--help'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`^Examples:\n( .*\n)*.*mem ${command}`, 'm'))
    expect(await runCli(['help', ...command.split(' ')])).toMatchObject({ code: 0, stdout })
  })

  test('marks what a command cannot do without', async () => {
    const { stdout } = await runCli(['gateway', 'keys', 'add', '--help'])
    expect(stdout).toMatch(/^ {2}--name <name> +Name for people \(required\)$/m)
    expect(stdout.match(/\(required\)/g)).toHaveLength(1)
  })

  test('of a noun lists its verbs', async () => {
    const { code, stdout } = await runCli(['help', 'collections'])
    expect(code).toBe(0)
    for (const verb of ['list', 'create', 'delete']) expect(stdout).toMatch(new RegExp(`^  ${verb} `, 'm'))
  })
})
