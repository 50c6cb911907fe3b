import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import { runProgram, spawnProgram } from '../support/program.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-test-mcp-program-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const lines = (...frames: object[]): string => frames.map((frame) => `${JSON.stringify(frame)}\n`).join('')
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

test('mem mcp writes frames to standard output and nothing else, and ends with its input', async () => {
  const create = { name: 'mem_create_workspace', arguments: { name: 'one' } }
  const input = lines(PING, { jsonrpc: '2.0', id: 2, method: 'tools/call', params: create })
  const { code, stdout, stderr } = await runProgram(['mcp'], { directory, input: `nonsense\n${input}` })
  const frames = stdout.trimEnd().split('\n')
  expect(frames.map((line) => JSON.parse(line))).toEqual([
    { jsonrpc: '2.0', id: null, error: expect.objectContaining({ code: -32700 }) },
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', id: 2, result: expect.objectContaining({ isError: false }) },
  ])
  expect(stderr).toContain('no API key')
  expect(code).toBe(0)
})

test('memory#145 with --api-key or MEM_API_KEY it wants the key in the handshake', async () => {
  const handshake = { jsonrpc: '2.0', id: 2, method: 'initialize', params: { apiKey: 'secret' } }
  for (const { args, env } of [
    { args: ['mcp', '--api-key', 'secret'], env: {} },
    { args: ['--api-key', 'secret', 'mcp'], env: {} },
    { args: ['mcp'], env: { MEM_API_KEY: 'secret' } },
  ]) {
    const { stdout, stderr } = await runProgram(args, { directory, env, input: lines(PING, handshake, PING) })
    const frames: { error?: { code: number } }[] = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(frames.map(({ error }) => error?.code)).toEqual([-32001, undefined, undefined])
    expect(stderr).not.toContain('secret')
  }
})

test('SIGTERM ends it in order', async () => {
  const child = spawnProgram(['mcp'], { directory })
  const ended = once(child, 'close')
  child.stdin.write(lines(PING))
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  const rest = await text(child.stdout)
  await ended
  expect([child.exitCode, child.signalCode, rest]).toEqual([0, null, ''])
})
