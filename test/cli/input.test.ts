import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startRecordingServer, type RecordingServer } from '../client/recording-server.ts'
import { runCli } from './run-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-cli-'))
let server: RecordingServer
let env: Record<string, string>

beforeAll(async () => {
  server = await startRecordingServer()
  env = { MEM_ENDPOINT: server.endpoint, MEM_WORKSPACE: 'ws_1' }
})
afterAll(async () => {
  await server.close()
  rmSync(directory, { recursive: true })
})
beforeEach(() => {
  server.requests.length = 0
})

const file = (name: string, content: string | Uint8Array): string => {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

/** A byte-order mark, CR LF, no final newline, four-byte characters: nothing of it may change. */
const CONTENT = '\ufeffone\r\n\ttwo 𝄞 é\n\nthree'

test('a password file may begin with a byte-order mark and end with a line break, and must hold something', async () => {
  const login = (name: string, text: string) =>
    runCli(['login', '--email', 'ada@example.org', '--password-file', file(name, text)], { env })
  await login('marked', '\ufeffcorrect horse \r\n')
  expect(server.requests[0]?.body).toEqual({ email: 'ada@example.org', password: 'correct horse ' })
  expect(await login('blank', '\n')).toMatchObject({ code: 4, stderr: expect.stringContaining('blank is empty') })
  expect(server.requests).toHaveLength(1)
})

describe('content', () => {
  test.each([
    ['--text', ['--text', CONTENT], ''],
    ['standard input', ['--text', '-'], CONTENT],
    ['a file', ['--from-file', file('content.md', CONTENT)], ''],
    ['standard input named as file', ['--from-file', '-'], CONTENT],
  ])('of %s arrives unchanged', async (_, flags, stdin) => {
    await runCli(['imprint', ...flags], { env, stdin })
    expect(server.requests[0]?.body).toEqual({ content: CONTENT })
  })

  test('may be empty, and may begin with a dash', async () => {
    await runCli(['imprint', '--text', ''], { env })
    await runCli(['imprint', '--text', '--quiet'], { env })
    expect(server.requests.map(({ body }) => body)).toEqual([{ content: '' }, { content: '--quiet' }])
  })

  test.each([
    ['no source', [], 1, '--from-file'],
    ['two sources', ['--text', 'a', '--from-file', 'b'], 1, '--from-file'],
    ['a missing file', ['--from-file', join(directory, 'none')], 4, 'cannot read'],
    ['a file that is no text', ['--from-file', file('bytes', Buffer.from([0xff, 0xfe, 0x00]))], 4, 'not UTF-8'],
    ['a tag without value', ['--text', 'a', '--tag', 'k'], 1, 'key=value'],
    ['a tag without key', ['--text', 'a', '--tag', '=v'], 1, 'key=value'],
  ])('%s is refused', async (_, flags, code, says) => {
    expect(await runCli(['imprint', ...flags], { env })).toMatchObject({ code, stderr: expect.stringContaining(says) })
    expect(server.requests).toEqual([])
  })
})

describe('patches', () => {
  const operations = [{ old_string: 'a', new_string: 'b', replace_all: true }]
  const ifMatch = ['--if-match', 'wmk_1']

  test.each([
    ['a file', ['--patch-file', file('patch.json', JSON.stringify(operations))], ''],
    ['standard input', ['--patch-file', '-'], JSON.stringify(operations)],
  ])('come from %s', async (_, flags, stdin) => {
    await runCli(['patch', 'mem_1', ...ifMatch, ...flags], { env, stdin })
    expect(server.requests[0]?.body).toEqual({ patch: operations })
  })

  test.each([
    ['no source', [], 'one of --patch'],
    ['no JSON', ['--patch', '[{'], 'not JSON'],
    ['no list', ['--patch', '{"old_string":"a","new_string":"b"}'], 'JSON list'],
    ['a list of texts', ['--patch', '["a"]'], 'JSON list'],
  ])('%s is refused', async (_, flags, says) => {
    const result = await runCli(['patch', 'mem_1', ...ifMatch, ...flags], { env })
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining(says) })
    expect(server.requests).toEqual([])
  })
})

describe('edges', () => {
  const edges = [
    { source_memory_id: 'mem_1', target_memory_id: 'mem_2', edge_type: 'mentions', properties_json: { a: 1 } },
    { source_memory_id: 'mem_2', target_memory_id: 'mem_1', edge_type: 'mentions' },
  ]

  test.each([
    ['a JSON list', JSON.stringify(edges, null, 2)],
    ['JSON lines', edges.map((edge) => JSON.stringify(edge)).join('\n')],
  ])('come as %s', async (_, text) => {
    server.replies.push({ body: { results: [], ok: 2, failed: 0 } })
    expect(await runCli(['link-batch', file('edges', text)], { env })).toMatchObject({ code: 0 })
    expect(server.requests[0]?.body).toEqual({ edges })
  })

  test.each([
    ['a broken line', '{}\n{', 'line 2'],
    ['no objects', '[1]', 'JSON objects'],
  ])('%s is refused', async (_, text, says) => {
    const result = await runCli(['link-batch', '-'], { env, stdin: text })
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining(says) })
  })

  test('properties must be an object', async () => {
    const result = await runCli(['link', 'mem_1', 'mem_2', '--properties', '[]'], { env })
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('JSON object') })
  })
})
