import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { MemoryApiError } from '../../src/client/errors.ts'
import { MemoryClient } from '../../src/client/memory-client.ts'
import type { LedgerEntry, Memory, WatermarkEntry, Workspace } from '../../src/client/types.ts'
import { runProgram } from '../support/program.ts'
import { startServer, type RunningServer } from '../support/server.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-e2e-cli-'))
let server: RunningServer
/** Asks for a key and has no graph. */
let keyed: RunningServer
let workspace: string

beforeAll(async () => {
  const opened = await Promise.all([
    startServer(),
    startServer({ args: ['--api-key', 'k-e2e', '--graph-driver', 'none'] }),
  ])
  ;[server, keyed] = opened
  workspace = (await new MemoryClient(server.url).createWorkspace({ name: 'e2e' })).id
})
afterAll(async () => {
  await Promise.all([server.stop(), keyed.stop()])
  rmSync(directory, { recursive: true, force: true })
})

/** Runs `mem` as a person would who has exported the server and the workspace. */
const mem = (args: string[], input = '') =>
  runProgram(args, { directory, input, env: { MEM_ENDPOINT: server.url, MEM_WORKSPACE: workspace } })

/** The answer of a command that must succeed. */
async function answer<T>(args: string[], input = ''): Promise<T> {
  const { code, stdout, stderr } = await mem([...args, '--output', 'json'], input)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const parsed: T = JSON.parse(stdout)
  return parsed
}

const imprint = async (text: string): Promise<{ memory_id: string; watermark: string }> =>
  answer(['imprint', '--text', text])

describe('memory#139', () => {
  test('memory#139 flags before and after the verb', async () => {
    const { memory_id: id } = await imprint('flags')
    const bare = (args: string[]) => runProgram(args, { directory })
    const flags = ['--endpoint', server.url, '-w', workspace, '-o', 'json', '--agent-id', 'agent_flags']
    for (const args of [
      [...flags, 'tags', 'set', id, 'place', 'before'],
      ['tags', ...flags, 'set', id, 'place', 'between'],
      ['tags', 'set', id, 'place', 'behind', ...flags],
    ]) {
      expect(await bare(args)).toMatchObject({ code: 0, stderr: '' })
    }
    const { entries } = await answer<{ entries: LedgerEntry[] }>([
      'ledger',
      'list',
      '--agent',
      'agent_flags',
      '--op',
      'tag_set',
    ])
    expect(entries.map(({ target }) => target)).toEqual([id, id, id])
    expect((await answer<Memory>(['lookup', id])).tags).toEqual({ place: 'behind' })
  })

  test('memory#139 four formats', async () => {
    const first = await imprint('format one')
    const ids = (memories: Memory[]) => memories.map(({ id }) => id)
    const json = await answer<{ memories: Memory[] }>(['list', '--limit', '1'])
    expect(ids(json.memories)).toEqual([first.memory_id])
    expect(parse((await mem(['list', '--limit', '1', '-o', 'yaml'])).stdout)).toEqual(json)
    const jsonl = await mem(['list', '--limit', '1', '-o', 'jsonl'])
    expect(JSON.parse(jsonl.stdout)).toEqual(json.memories[0])
    expect((await mem(['list', '--limit', '1'])).stdout).toBe(`${first.memory_id}  format one\n`)
  })

  test('memory#139 imprint from text, stdin, file', async () => {
    const content = 'über\r\n\n  drei 𝄞'
    const file = join(directory, 'content.txt')
    writeFileSync(file, content)
    const imprinted = await Promise.all([
      answer<{ memory_id: string }>(['imprint', '--text', content]),
      answer<{ memory_id: string }>(['imprint', '--text', '-'], content),
      answer<{ memory_id: string }>(['imprint', '--from-file', file]),
    ])
    for (const { memory_id: id } of imprinted) {
      expect(await answer<Memory>(['lookup', id])).toMatchObject({ content, written_by_agent_id: 'agent_opaque_local' })
    }
  })

  test('memory#139 all exit codes', async () => {
    const { memory_id: id, watermark } = await imprint('codes')
    await answer(['append', id, '--text', ' more'])
    const config = join(directory, 'bad.yaml')
    writeFileSync(config, 'server:\n  adress: 127.0.0.1:0\n')
    const onKeyed = (args: string[]) => mem([...args, '--endpoint', keyed.url])
    const made = await onKeyed(['workspaces', 'create', '--name', 'k', '--api-key', 'k-e2e', '-o', 'json'])
    const other: Workspace = JSON.parse(made.stdout)
    const runs = {
      ok: mem(['health']),
      usage: mem(['lookup']),
      unauthorized: onKeyed(['health']),
      server: onKeyed(['graph', 'stats', '--api-key', 'k-e2e', '-w', other.id]),
      client: mem(['link', id, id]),
      local: mem(['imprint', '--from-file', join(directory, 'none')]),
      conflict: mem(['update', id, '--text', 'x', '--if-match', watermark]),
      absent: mem(['lookup', 'mem_none']),
      configuration: mem(['check-config', '--config', config]),
    }
    const codes: Record<string, number> = {}
    for (const [name, run] of Object.entries(runs)) {
      const { code, stdout, stderr } = await run
      codes[name] = code
      expect(stdout === '' || name === 'ok').toBe(true)
      expect(stderr).not.toMatch(/^\s+at /m)
    }
    expect(codes).toEqual({
      ok: 0,
      usage: 1,
      unauthorized: 2,
      server: 3,
      client: 4,
      local: 4,
      conflict: 5,
      absent: 8,
      configuration: 78,
    })
  })
})

test('memory#140 diff, restore: old content under a new mark', async () => {
  const { memory_id: id, watermark: first } = await imprint('one\ntwo\nthree\n')
  expect((await mem(['tags', 'set', id, 'state', 'kept'])).code).toBe(0)
  const { watermark: second } = await answer<{ watermark: string }>(['update', id, '--text', 'one\n2\nthree\n'])

  const change = '@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n'
  for (const args of [[first], [first, second]]) {
    const { code, stdout } = await mem(['diff', id, ...args])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`^--- ${id}@${first}.*\n\\+\\+\\+ ${id}@${second}.*\n`))
    expect(stdout.endsWith(change)).toBe(true)
  }

  expect((await mem(['restore', id, first, '--if-match', first])).code).toBe(5)
  const { watermark: third } = await answer<{ watermark: string }>(['restore', id, first])
  expect([first, second]).not.toContain(third)
  const restored = await answer<Memory>(['lookup', id])
  expect(restored).toMatchObject({ content: 'one\ntwo\nthree\n', head_watermark: third, tags: { state: 'kept' } })
  const { watermarks } = await answer<{ watermarks: WatermarkEntry[] }>(['watermarks', id])
  expect(watermarks.map(({ watermark, op }) => [watermark, op])).toEqual([
    [third, 'update'],
    [second, 'update'],
    [first, 'imprint'],
  ])
})

test('memory#143 every client method; error helpers; no provider header sent', async () => {
  const providers: (string | null)[] = []
  const watching: typeof fetch = (input, init) => {
    providers.push(new Headers(init?.headers).get('Mem-Identity-Provider'))
    return fetch(input, init)
  }
  const client = new MemoryClient(server.url, undefined, { agentId: 'agent_143', fetch: watching })

  const { id: ws } = await client.createWorkspace({ name: '143' }, { idempotencyKey: 'ws-143' })
  expect((await client.createWorkspace({ name: '143' }, { idempotencyKey: 'ws-143' })).id).toBe(ws)
  expect((await client.getWorkspace(ws)).name).toBe('143')
  expect((await client.listWorkspaces({ limit: 1 })).workspaces).toHaveLength(1)
  expect((await client.updateWorkspace(ws, { name: '143b', region: 'eu' })).region).toBe('eu')
  const collection = await client.createCollection(ws, { name: 'c' })
  expect(await client.getCollection(ws, collection.id)).toEqual(collection)
  expect((await client.listCollections(ws)).collections).toEqual([collection])

  const a = await client.imprint(ws, { content: 'rye bread', collection_id: collection.id, tags: { topic: 'food' } })
  const b = await client.imprint(ws, { content: 'wheat beer' })
  const updated = await client.update(ws, a.memory_id, { content: 'rye bread, fresh' }, a.watermark)
  const operation = { old_string: 'fresh', new_string: 'stale' }
  const patched = await client.patch(ws, a.memory_id, { patch: [operation] }, updated.watermark)
  const appended = await client.append(ws, a.memory_id, { content: ' and hard' }, patched.watermark)
  expect(await client.lookup(ws, a.memory_id)).toMatchObject({
    content: 'rye bread, stale and hard',
    head_watermark: appended.watermark,
    last_modified_by_agent_id: 'agent_143',
  })
  expect(await client.lookupAt(ws, a.memory_id, a.watermark)).toMatchObject({
    content: 'rye bread',
    current_watermark: appended.watermark,
  })
  expect((await client.watermarkHistory(ws, a.memory_id)).watermarks).toHaveLength(4)
  const listed = await client.listMemories(ws, { collection_id: collection.id, include_content: false })
  expect(listed.memories.map(({ id, content }) => [id, content])).toEqual([[a.memory_id, undefined]])
  await client.setTag(ws, a.memory_id, 'a/b ?', 'c')
  expect((await client.lookup(ws, a.memory_id)).tags).toEqual({ topic: 'food', 'a/b ?': 'c' })
  await client.deleteTag(ws, a.memory_id, 'a/b ?')
  expect((await client.lookup(ws, a.memory_id)).tags).toEqual({ topic: 'food' })

  const recalled = await client.recall(ws, { query: 'bread', mode: 'keyword', filters: { tags: { topic: ['food'] } } })
  expect(recalled.results.map(({ memory_id }) => memory_id)).toEqual([a.memory_id])
  const pin = await client.createPin(ws, { query: 'bread', label: 'l' })
  expect((await client.listPins(ws)).pins).toMatchObject([
    { pin_id: pin.pin_id, query: 'bread', mode: 'hybrid', k: 10 },
  ])
  await client.deletePin(ws, pin.pin_id)

  const { edge } = await client.link(ws, a.memory_id, { target_memory_id: b.memory_id, edge_type: 'references' })
  expect((await client.listEdges(ws, a.memory_id, { direction: 'out' })).edges).toEqual([edge])
  expect((await client.neighbors(ws, { memory_id: b.memory_id, direction: 'in' })).edges).toEqual([edge])
  const walk = await client.traverse(ws, { seed_memory_id: a.memory_id })
  expect(walk.layers).toEqual([[{ memory_id: b.memory_id, via_edge_id: edge.edge_id, via_edge_type: 'references' }]])
  expect(await client.graphStats(ws)).toEqual({ node_count: 2, edge_count_by_type: { references: 1 } })
  const rows = [{ source_memory_id: b.memory_id, target_memory_id: a.memory_id, edge_type: 'mentions' as const }]
  expect(await client.linkBatch(ws, { edges: rows })).toMatchObject({ ok: 1, failed: 0 })
  await client.unlink(ws, edge.edge_id)

  const agent = await client.registerAgent(ws, { agent_id: 'agent_x', identity_provider: 'opaque', display_name: 'X' })
  expect(await client.getAgent(ws, 'agent_x')).toEqual(agent)
  expect((await client.listAgents(ws)).agents.map(({ agent_id }) => agent_id)).toContain('agent_143')
  await client.deactivateAgent(ws, 'agent_x')
  expect((await client.getAgent(ws, 'agent_x')).active).toBe(false)

  const ledger = await client.ledgerQuery(ws, { op: 'link,unlink', order: 'asc', agent_id: 'agent_143' })
  expect(ledger.entries.map(({ op }) => op)).toEqual(['link', 'link', 'unlink'])
  expect(await client.health()).toMatchObject({ ok: true, status: 'live' })
  expect(await client.ready()).toMatchObject({ ok: true, adapter: { primary: 'ok', vector: 'ok', ledger: 'ok' } })

  const conflict = await client.update(ws, a.memory_id, { content: 'x' }, a.watermark).catch((error: unknown) => error)
  expect(conflict).toBeInstanceOf(MemoryApiError)
  expect(conflict).toMatchObject({ status: 412, envelope: { error_code: 'cas_conflict' } })
  expect(conflict instanceof MemoryApiError && conflict.isCasConflict() && !conflict.isNotFound()).toBe(true)
  const absent = await client.lookup(ws, 'mem_none').catch((error: unknown) => error)
  expect(absent instanceof MemoryApiError && absent.isNotFound() && !absent.isCasConflict()).toBe(true)

  for (const { memory_id: id } of [a, b]) expect((await client.forget(ws, id)).memory_id).toBe(id)
  await client.deleteCollection(ws, collection.id)
  await client.deleteWorkspace(ws)
  await expect(client.getWorkspace(ws)).rejects.toMatchObject({ status: 404 })
  expect(new Set(providers)).toEqual(new Set([null]))
})
