import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeOnBoth, startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { callEveryTool } from './every-tool.ts'
import { callTool, startSocket, type Answer, type Wire } from './support.ts'

let api: MemoryApi
let wire: Wire
let tools: Answer[]
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_MCP_ENABLE: 'true' } })
  wire = await startSocket(api.url)
  await wire.call('initialize', { protocolVersion: '2025-11-25' })
  tools = (await wire.call('tools/list')).result.tools
})
afterAll(async () => {
  await wire.close()
  await api.stop()
})

const call = (name: string, args: object): Promise<Answer> => callTool(wire, name, args)
const refusal = async (name: unknown, args?: unknown): Promise<Answer> =>
  (await wire.call('tools/call', { name, arguments: args })).error

describe('memory#146 tools/list', () => {
  test('names exactly the 25 tools', () => {
    const names =
      'create_workspace get_workspace list_workspaces update_workspace delete_workspace create_collection ' +
      'list_collections delete_collection imprint lookup update patch append forget list_memories ' +
      'get_watermark_history recall pin unpin link unlink neighbors traverse register_agent list_agents'
    expect(tools.map((tool) => tool.name)).toEqual(names.split(' ').map((name) => `mem_${name}`))
  })

  test('describes each within 6,000 tokens of 4 characters', () => {
    for (const tool of tools) {
      expect(tool.description).not.toBe('')
      expect(tool.inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
      expect(tool.outputSchema).toMatchObject({ type: 'object', required: expect.any(Array) })
      expect(typeof tool.annotations.readOnlyHint).toBe('boolean')
    }
    expect(JSON.stringify({ tools }).length).toBeLessThanOrEqual(24_000)
  })

  test('says what writes, and what destroys', () => {
    const hints = Object.fromEntries(tools.map((tool) => [tool.name, tool.annotations]))
    expect(hints['mem_recall']).toEqual({ readOnlyHint: true })
    expect(hints['mem_imprint']).toEqual({ readOnlyHint: false, destructiveHint: false, idempotentHint: false })
    expect(hints['mem_forget']).toEqual({ readOnlyHint: false, destructiveHint: true, idempotentHint: true })
  })

  test('each is callable with its required arguments, and refuses missing, mistyped and unknown ones', async () => {
    const calls = await callEveryTool(call)
    expect(new Set(Object.keys(calls))).toEqual(new Set(tools.map((tool) => tool.name)))
    for (const tool of tools) {
      const args = calls[tool.name]?.args ?? {}
      expect(new Set(Object.keys(args))).toEqual(new Set(tool.inputSchema.required))
      for (const field of Object.keys(args)) {
        const invalid = {
          code: -32602,
          data: { tool: tool.name, error_code: 'invalid_input', status: 400, details: { field } },
        }
        expect(await refusal(tool.name, { ...args, [field]: undefined })).toMatchObject(invalid)
        expect(await refusal(tool.name, { ...args, [field]: [7] })).toMatchObject({ code: -32602 })
      }
      const unknown = { code: -32602, data: { error_code: 'invalid_input', details: { field: 'bogus' } } }
      expect(await refusal(tool.name, { ...args, bogus: 1 })).toMatchObject(unknown)
    }
  })
})

describe('memory#147 failures', () => {
  test('unknown tools and arguments that are no object are -32602', async () => {
    for (const name of ['mem_nothing', 'toString', undefined, 7]) {
      expect(await refusal(name, {})).toMatchObject({ code: -32602, data: { error_code: 'invalid_input' } })
    }
    for (const args of [7, null, [], 'x']) {
      expect(await refusal('mem_list_workspaces', args)).toMatchObject({ code: -32602 })
    }
  })

  test('U+0000 and half of a surrogate pair are -32602', async () => {
    for (const name of ['a\0b', 'a\ud800']) {
      expect(await refusal('mem_create_workspace', { name })).toMatchObject({ code: -32602 })
    }
  })

  test('a failed operation is -32603 with tool, code, status and details', async () => {
    const ws = (await call('mem_create_workspace', { name: 'failing' })).id
    const agent_id = 'agent_test'
    const { memory_id, watermark } = await call('mem_imprint', { workspace_id: ws, agent_id, content: 'a a' })
    const edit = { workspace_id: ws, agent_id, memory_id }
    const failure = (tool: string, error_code: string, status: number, details: object) => ({
      code: -32603,
      message: expect.any(String),
      data: { tool, error_code, status, details },
    })
    expect(await refusal('mem_get_workspace', { workspace_id: 'ws_none' })).toEqual(
      failure('mem_get_workspace', 'not_found', 404, { resource: 'workspace', id: 'ws_none' }),
    )
    expect(await refusal('mem_delete_workspace', { workspace_id: ws })).toEqual(
      failure('mem_delete_workspace', 'not_empty', 409, { count: 1 }),
    )
    expect(await refusal('mem_update', { ...edit, content: 'b', expected_watermark: 'wmk_old' })).toEqual(
      failure('mem_update', 'cas_conflict', 412, { expected_watermark: 'wmk_old', head_watermark: watermark }),
    )
    const patch = [{ old_string: 'a', new_string: 'b' }]
    expect(await refusal('mem_patch', { ...edit, patch, expected_watermark: watermark })).toEqual(
      failure('mem_patch', 'patch_anchor_not_found', 400, { index: 0, reason: 'ambiguous', matches: 2 }),
    )
    expect(await refusal('mem_recall', { workspace_id: ws, query: ' ' })).toEqual(
      failure('mem_recall', 'invalid_input', 400, { field: 'query' }),
    )
    expect(await refusal('mem_imprint', { workspace_id: ws, agent_id: 'agent_system', content: 'x' })).toMatchObject({
      code: -32603,
      data: { error_code: 'agent_verification_failed', status: 401 },
    })
    expect(await refusal('mem_list_memories', { workspace_id: ws, cursor: 'x' })).toMatchObject({
      data: { error_code: 'invalid_input', details: { field: 'cursor' } },
    })
  })

  test('the workspace may be left out for collections, pins and Edges, but must be theirs', async () => {
    const [ws, other] = [await api.workspace(), await api.workspace()]
    const agent_id = 'agent_test'
    const [source, target] = [await api.imprint(ws, 'one'), await api.imprint(ws, 'two')]
    const link = { source_memory_id: source, target_memory_id: target, edge_type: 'references' }
    const { edge } = await call('mem_link', { workspace_id: ws, agent_id, ...link })
    const collection = await call('mem_create_collection', { workspace_id: ws, name: 'c' })
    const pin = await call('mem_pin', { workspace_id: ws, query: 'q' })
    const records = [
      ['mem_delete_collection', { collection_id: collection.id }, { deleted: collection.id }],
      ['mem_unpin', { pin_id: pin.pin_id }, { pin_id: pin.pin_id, unpinned: true }],
      ['mem_unlink', { edge_id: edge.edge_id, agent_id }, { edge_id: edge.edge_id, unlinked: true }],
    ] as const
    for (const [name, args, answer] of records) {
      const foreign = await refusal(name, { ...args, workspace_id: other })
      expect(foreign).toMatchObject({ code: -32603, data: { error_code: 'not_found', status: 404 } })
      expect(await call(name, { ...args, workspace_id: ws })).toEqual(answer)
      expect(await refusal(name, args)).toMatchObject({ code: -32603, data: { error_code: 'not_found' } })
    }
  })
})

describe('answers', () => {
  test('are those of REST', async () => {
    const ws = await api.workspace()
    const id = await api.imprint(ws, 'Rye bread.', { tags: { a: 'b' } })
    const rest = async (path: string): Promise<unknown> => (await api.call('GET', `/workspaces/${ws}${path}`)).body
    const args = { workspace_id: ws, memory_id: id }
    expect(await call('mem_get_workspace', { workspace_id: ws })).toEqual(await rest(''))
    expect(await call('mem_lookup', args)).toEqual(await rest(`/memories/${id}`))
    expect(await call('mem_list_memories', { workspace_id: ws })).toEqual(await rest('/memories'))
    expect(await call('mem_get_watermark_history', args)).toEqual(await rest(`/memories/${id}/watermarks`))
    expect(await call('mem_list_agents', { workspace_id: ws })).toEqual(await rest('/agents'))
  })

  test('of past versions come without Cells', async () => {
    const ws = await api.workspace()
    const { memory_id, watermark } = (await api.call('POST', `/workspaces/${ws}/memories`, { content: 'old' })).body
    const edit = { workspace_id: ws, memory_id, agent_id: 'agent_test' }
    const head = await call('mem_update', { ...edit, content: 'new', expected_watermark: watermark })
    const past = await call('mem_lookup', { workspace_id: ws, memory_id, watermark })
    expect(past).toMatchObject({ content: 'old', head_watermark: watermark, current_watermark: head.watermark })
    expect(past).not.toHaveProperty('cells')
  })

  test('of update_workspace keep what was not given', async () => {
    const ws = await api.workspace({ region: 'eu', meta: { a: 1 }, auto_link_max_edges: 7 })
    const changed = await call('mem_update_workspace', { workspace_id: ws, name: 'renamed' })
    expect(changed).toMatchObject({ name: 'renamed', region: 'eu', meta: { a: 1 }, auto_link_max_edges: 7 })
    expect((await call('mem_update_workspace', { workspace_id: ws, region: 'us' })).name).toBe('renamed')
  })

  test('pin takes its query as text or object; what stands outside wins', async () => {
    const ws = await api.workspace()
    const agent_id = 'agent_test'
    await call('mem_pin', { workspace_id: ws, query: { query: 'one', mode: 'vector', k: 3 }, k: 4, agent_id })
    await call('mem_pin', { workspace_id: ws, query: 'two', label: 'mine' })
    const { pins } = (await api.call('GET', `/workspaces/${ws}/recall/pins`)).body
    expect(pins).toMatchObject([
      { query: 'two', mode: 'hybrid', k: 10, label: 'mine' },
      { query: 'one', mode: 'vector', k: 4, created_by: agent_id },
    ])
    expect(await refusal('mem_pin', { workspace_id: ws, query: { query: 'x', bogus: 1 } })).toMatchObject({
      code: -32602,
    })
  })

  test('what fits none of several forms is told by the form that was begun', async () => {
    const message = async (name: string, args: object): Promise<string> =>
      (await refusal(name, { workspace_id: 'ws_x', ...args })).message
    expect(await message('mem_pin', {})).toBe('query is required')
    expect(await message('mem_pin', { query: 7 })).toBe('query must be a string or an object')
    expect(await message('mem_pin', { query: {} })).toBe('query.query is required')
    expect(await message('mem_pin', { query: { query: 'x', k: 'y' } })).toBe('query.k must be a number')
    const asked = { query: 'x', filters: { tags: { a: 7 } } }
    expect(await message('mem_recall', asked)).toBe('filters.tags.a must be a string or an array')
  })

  test('recall may have an empty query in lookup, and k from 1 to 100', async () => {
    const ws = await api.workspace()
    const id = await api.imprint(ws, 'Rye bread.')
    const found = await call('mem_recall', { workspace_id: ws, query: '', mode: 'lookup', memory_ids: [id] })
    expect(found.results).toMatchObject([{ memory_id: id, text: 'Rye bread.' }])
    for (const k of [0, 101, 1.5]) {
      expect(await refusal('mem_recall', { workspace_id: ws, query: 'x', k })).toMatchObject({
        code: -32602,
        data: { details: { field: 'k' } },
      })
    }
  })

  test('leave one ledger entry each, with request id, address and agent', async () => {
    const ws = (await call('mem_create_workspace', { name: 'ledger' })).id
    await call('mem_imprint', { workspace_id: ws, agent_id: 'agent_test', content: 'x' })
    await call('mem_create_collection', { workspace_id: ws, name: 'c' })
    await refusal('mem_create_collection', { workspace_id: ws, name: 'c' })
    const { entries } = (await api.call('GET', `/workspaces/${ws}/ledger?order=asc`)).body
    expect(entries.map((entry: Answer) => [entry.op, entry.agent_id])).toEqual([
      ['workspace_create', 'agent_system'],
      ['agent_register', 'agent_test'],
      ['imprint', 'agent_test'],
      ['collection_create', 'agent_system'],
    ])
    expect(entries[2]).toMatchObject({ request_id: expect.stringMatching(/^req_/), ip: '127.0.0.1' })
  })
})

test('without a graph store the graph tools are 501', async () => {
  const bare = await startMemoryApi({ dialect: 'sqlite', env: { MEM_MCP_ENABLE: 'true', MEM_GRAPH_DRIVER: 'none' } })
  const line = await startSocket(bare.url)
  const ws = await bare.workspace()
  const refused = async (name: string, args: object): Promise<Answer> =>
    (await line.call('tools/call', { name, arguments: args })).error.data
  const missing = { error_code: 'capability_unavailable', status: 501, details: { seam: 'graph', driver: 'none' } }
  expect(await refused('mem_neighbors', { workspace_id: ws, memory_id: 'mem_x' })).toMatchObject(missing)
  expect(await refused('mem_unlink', { edge_id: 'edg_x', agent_id: 'agent_test' })).toMatchObject(missing)
  expect(await refused('mem_neighbors', { workspace_id: 'ws_x', memory_id: 'mem_x' })).toMatchObject({ status: 404 })
  await line.close()
  await bare.stop()
})

describeOnBoth(
  'on both databases',
  (served) => {
    test('every tool works', async () => {
      const line = await startSocket(served().url)
      expect(Object.keys(await callEveryTool((name, args) => callTool(line, name, args)))).toHaveLength(25)
      await line.close()
    })
  },
  { env: { MEM_MCP_ENABLE: 'true' } },
)
