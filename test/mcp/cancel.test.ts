import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startEmbeddingProvider, type EmbeddingProvider } from '../support/embedding-provider.ts'
import { startMemoryApi, type MemoryApi, type Reply } from '../support/memory-api.ts'
import { callTool, startSocket, startStdio, type Wire } from './support.ts'

let provider: EmbeddingProvider
let env: Record<string, string>
let api: MemoryApi
beforeAll(async () => {
  provider = await startEmbeddingProvider()
  env = { MEM_MCP_ENABLE: 'true', OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'none' }
  api = await startMemoryApi({ dialect: 'sqlite', env })
})
afterAll(async () => {
  await api.stop()
  await provider.stop()
})

const WORKSPACE = { name: 'slow', embedding_model: 'openai:words-8' }
const imprint = (workspace_id: string): object => ({
  name: 'mem_imprint',
  arguments: { workspace_id, agent_id: 'agent_test', content: 'Rye bread.' },
})
const cancellation = (requestId: unknown): object => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId, reason: 'changed my mind' },
})

describe.each(['stdio', 'WebSocket'] as const)('a cancelled call over %s', (transport) => {
  let wire: Wire
  beforeAll(async () => {
    wire = transport === 'stdio' ? startStdio({ env }) : await startSocket(api.url)
  })

  test('ends, has no effect and no answer', async () => {
    const { id } = await callTool(wire, 'mem_create_workspace', WORKSPACE)
    provider.behave = () => 'hangs'
    const [asked, abandoned] = [provider.next('asked'), provider.next('abandoned')]
    wire.write(JSON.stringify({ jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: imprint(id) }))
    await asked
    for (const other of ['other', 7, undefined, {}]) wire.write(JSON.stringify(cancellation(other)))
    expect((await wire.call('ping')).result).toEqual({})
    wire.write(JSON.stringify(cancellation('slow')))
    await abandoned
    provider.recover()
    expect(await callTool(wire, 'mem_list_memories', { workspace_id: id })).toEqual({ memories: [] })
    wire.write(JSON.stringify(cancellation('slow')))
    expect(await wire.close()).toEqual([])
  })
})

describe('a cancelled call over streamable HTTP', () => {
  const post = (body: object, session?: string): Promise<Reply> =>
    api.call('POST', '//mcp', body, session === undefined ? {} : { headers: { 'Mcp-Session-Id': session } })
  const begin = async (): Promise<string> => {
    const reply = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })
    return reply.headers.get('Mcp-Session-Id') ?? ''
  }
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' }

  test('goes on when another session says so', async () => {
    const [session, other, ws] = [await begin(), await begin(), await api.workspace(WORKSPACE)]
    provider.behave = () => 'hangs'
    const asked = provider.next('asked')
    const slow = post({ ...call, params: imprint(ws) }, session)
    await asked
    for (const foreign of [other, undefined]) expect((await post(cancellation(1), foreign)).status).toBe(202)
    provider.recover()
    expect(await slow).toMatchObject({ status: 200, body: { id: 1, result: { isError: false } } })
  })

  test('ends when the same session says so', async () => {
    const [session, ws] = [await begin(), await api.workspace(WORKSPACE)]
    provider.behave = () => 'hangs'
    const [asked, abandoned] = [provider.next('asked'), provider.next('abandoned')]
    const slow = post({ ...call, params: imprint(ws) }, session)
    await asked
    expect((await post(cancellation(1), session)).status).toBe(202)
    await abandoned
    expect(await slow).toMatchObject({ status: 202, body: undefined })
    provider.recover()
    expect((await api.call('GET', `/workspaces/${ws}/memories`)).body).toEqual({ memories: [] })
  })

  test('ends in the stateless revision when the client goes', async () => {
    const ws = await api.workspace(WORKSPACE)
    provider.behave = () => 'hangs'
    const [asked, abandoned] = [provider.next('asked'), provider.next('abandoned')]
    const meta = 'io.modelcontextprotocol/'
    const _meta = { [`${meta}protocolVersion`]: '2026-07-28', [`${meta}clientCapabilities`]: {} }
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'mem_imprint' }
    const client = new AbortController()
    const body = JSON.stringify({ ...call, params: { ...imprint(ws), _meta } })
    const slow = fetch(`${api.url}/mcp`, { method: 'POST', headers, body, signal: client.signal })
    await asked
    client.abort()
    await expect(slow).rejects.toThrow('abort')
    await abandoned
    provider.recover()
    expect((await api.call('GET', `/workspaces/${ws}/memories`)).body).toEqual({ memories: [] })
  })
})
