import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { type MemoryApi, type Reply } from '../support/memory-api.ts'
import { send, type RawReply } from '../support/raw-request.ts'
import { proofHash, vendorAgentId } from '../support/vendor-session.ts'
import { startsServices, startSocket } from './support.ts'

const KEY = { Authorization: 'Bearer secret' }
const start = startsServices()

let api: MemoryApi
beforeAll(async () => {
  api = await start({ MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'secret', MEM_SERVER_TIMEOUT: '1s' })
})

const post = (body: unknown, headers: Record<string, string> = {}, to = api): Promise<Reply> =>
  to.call('POST', '//mcp', body, { agent: null, headers: { ...KEY, ...headers } })
const request = (method: string, params: object = {}): object => ({ jsonrpc: '2.0', id: 1, method, params })
const toolCall = (name: string, args: object): object => request('tools/call', { name, arguments: args })
const answerOf = ({ body }: Reply): Record<string, unknown> => JSON.parse(body.result.content[0].text)

describe('streamable HTTP', () => {
  test('an offer of HTTP/2 is not taken, and the request served whole', async () => {
    const offering = (method: string, path: string, body?: string): Promise<RawReply> =>
      send(api.url + path, {
        method,
        headers: {
          ...KEY,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          Connection: 'Upgrade, HTTP2-Settings',
          Upgrade: 'h2c',
          'HTTP2-Settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
        },
        ...(body !== undefined && { body }),
      })
    const large = JSON.stringify({ name: 'h2c', meta: { text: 'é'.repeat(30_000) } })
    expect(await offering('POST', '/v1/workspaces', large)).toMatchObject({ status: 201 })
    expect(await offering('POST', '/mcp', JSON.stringify(request('ping')))).toMatchObject({ status: 200 })
    expect(await offering('GET', '/healthz')).toMatchObject({ status: 200 })
    expect(await offering('GET', '/mcp')).toMatchObject({ status: 400 })
    const warned: Error[] = []
    const note = (warning: Error): number => warned.push(warning)
    process.on('warning', note)
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    for (let i = 0; i < 12; i++) {
      socket.write(
        'GET /healthz HTTP/1.1\r\nAuthorization: Bearer secret\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
      )
      const [answer] = await once(socket, 'data')
      expect(String(answer)).toContain('200 OK')
    }
    socket.destroy()
    process.off('warning', note)
    expect(warned).toEqual([])
  })

  test('GET without an upgrade is 400, a wish for a stream and other methods are 405', async () => {
    const call = (method: string, headers = {}): Promise<Reply> =>
      api.call(method, '//mcp', undefined, { headers: { ...KEY, ...headers } })
    expect(await call('GET')).toMatchObject({ status: 400, body: { error_code: 'invalid_input' } })
    for (const reply of [await call('GET', { Accept: 'text/event-stream' }), await call('DELETE'), await call('PUT')]) {
      expect(reply).toMatchObject({ status: 405, body: { error_code: 'method_not_allowed' } })
      expect(reply.headers.get('Allow')).toContain('POST')
    }
    expect((await api.call('POST', '//mcp', request('ping'), { headers: {} })).status).toBe(401)
  })

  test('each POST is a frame', async () => {
    expect(await post(request('ping'))).toMatchObject({ status: 200, body: { jsonrpc: '2.0', id: 1, result: {} } })
    expect(await post({ jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({
      status: 202,
      body: undefined,
    })
    expect((await post([request('ping'), { jsonrpc: '2.0', id: 2, method: 'nonsense' }])).body).toMatchObject([
      { id: 1, result: {} },
      { id: 2, error: { code: -32601 } },
    ])
    expect(await post({ id: 1 })).toMatchObject({ status: 400, body: { id: 1, error: { code: -32600 } } })
    const raw = (body: string): Promise<Reply> => api.call('POST', '//mcp', undefined, { raw: body, headers: KEY })
    expect(await raw('{')).toMatchObject({ status: 400, body: { id: null, error: { code: -32700 } } })
    for (const size of [4, 8]) {
      expect(await raw(' '.repeat(size * 1024 * 1024 + 1))).toMatchObject({
        status: 400,
        body: { error: { code: -32600 } },
      })
    }
    expect((await post(toolCall('mem_nothing', {}))).body.error).toMatchObject({ code: -32602 })
  })

  test('the revision is that of the header, and must be known', async () => {
    const listed = async (revision?: string): Promise<string[]> => {
      const reply = await post(
        request('tools/list'),
        revision === undefined ? {} : { 'MCP-Protocol-Version': revision },
      )
      return Object.keys(reply.body.result.tools[0])
    }
    expect(await listed()).not.toContain('outputSchema')
    expect(await listed('2024-11-05')).toEqual(['name', 'description', 'inputSchema'])
    expect(await listed('2025-11-25')).toContain('outputSchema')
    expect((await post(request('tools/list'), { 'MCP-Protocol-Version': '1999-01-01' })).status).toBe(400)
  })

  test('a handshake gives a session, which keeps the pinned agent over a restart', async () => {
    const sessionOf = async (params: object): Promise<string | null> =>
      (await post(request('initialize', params))).headers.get('Mcp-Session-Id')
    expect(await sessionOf({})).not.toBe(await sessionOf({}))
    expect(await sessionOf({ apiKey: 'wrong' })).toBeNull()
    expect((await post(request('ping'))).headers.get('Mcp-Session-Id')).toBeNull()
    const { headers } = await post(request('initialize', { agentId: 'agent_pinned' }))
    const session = headers.get('Mcp-Session-Id') ?? ''
    expect(session).toMatch(/^[\x21-\x7e]+$/)
    const again = await start({ MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'secret' })
    const inSession = { 'Mcp-Session-Id': session }
    const { id: workspace_id } = answerOf(await post(toolCall('mem_create_workspace', { name: 's' }), inSession, again))
    const write = toolCall('mem_imprint', { workspace_id, agent_id: 'agent_other', content: 'x' })
    expect(answerOf(await post(write, inSession, again))).toMatchObject({ written_by_agent_id: 'agent_pinned' })
    expect(answerOf(await post(write, {}, again))).toMatchObject({ written_by_agent_id: 'agent_other' })
    const encoded = (contents: object): string => Buffer.from(JSON.stringify(contents)).toString('base64url')
    for (const bad of ['x', session.slice(1), encoded({}), encoded({ agentId: 'agent_root' })]) {
      expect((await post(write, { 'Mcp-Session-Id': bad }, again)).status).toBe(404)
    }
    const unproven = { nonce: crypto.randomUUID(), agentId: 'agent_vendor_session_x', provider: 'vendor_session' }
    expect(await post(write, { 'Mcp-Session-Id': encoded(unproven) }, again)).toMatchObject({
      status: 401,
      body: { error_code: 'agent_verification_failed' },
    })
  })

  test('memory#107 a proof is not in the id of its session, be it as long as a system prompt', async () => {
    const proof = { session_id: 's-1', model: 'm-1', system_prompt: 'You are a keeper. '.repeat(1500) }
    const agentId = vendorAgentId(proof.session_id, proof.model, proof.system_prompt)
    const said = { agentId, identityProvider: 'vendor_session', identityProof: proof }
    const begun = await post(request('initialize', said))
    const session = begun.headers.get('Mcp-Session-Id') ?? ''
    expect(session.length).toBeLessThan(1000)
    expect(Buffer.from(session, 'base64url').toString()).not.toMatch(/s-1|m-1|keeper/)
    const again = await start({ MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'secret' })
    const inSession = { 'Mcp-Session-Id': session }
    const { id: workspace_id } = answerOf(await post(toolCall('mem_create_workspace', { name: 'p' }), inSession, again))
    const { agents } = answerOf(await post(toolCall('mem_list_agents', { workspace_id }), inSession, again))
    expect(agents).toContainEqual(
      expect.objectContaining({
        agent_id: agentId,
        identity_provider: 'vendor_session',
        identity_proof_hash: proofHash(proof),
      }),
    )
    const contents = JSON.parse(Buffer.from(session, 'base64url').toString())
    for (const changed of [{ agentId: 'agent_vendor_session_x' }, { seal: 'x' }, { seal: undefined }]) {
      const forged = Buffer.from(JSON.stringify({ ...contents, ...changed })).toString('base64url')
      expect((await post(request('ping'), { 'Mcp-Session-Id': forged }, again)).status).toBe(404)
    }
    const other = await start({ MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'another' })
    const elsewhere = { Authorization: 'Bearer another', 'Mcp-Session-Id': session }
    expect((await post(request('ping'), elsewhere, other)).status).toBe(404)
  })

  test('headers name the agent as in REST', async () => {
    const { id: workspace_id } = answerOf(await post(toolCall('mem_create_workspace', { name: 'h' })))
    const write = toolCall('mem_imprint', { workspace_id, agent_id: 'agent_other', content: 'x' })
    const reply = await post(write, { 'Mem-Agent-Id': 'agent_header', 'X-Request-ID': 'req-7' })
    expect(answerOf(reply)).toMatchObject({ written_by_agent_id: 'agent_header' })
    const { body } = await api.call('GET', `/workspaces/${String(workspace_id)}/ledger?op=imprint`, undefined, {
      headers: KEY,
    })
    expect(body.entries).toMatchObject([{ agent_id: 'agent_header', request_id: 'req-7' }])
    const unproven = { 'Mem-Agent-Id': 'agent_header', 'Mem-Identity-Provider': 'vendor_session' }
    expect(await post(write, unproven)).toMatchObject({
      status: 401,
      body: { error_code: 'agent_verification_failed' },
    })
  })
})

describe('the stateless revision', () => {
  const REVISION = '2026-07-28'
  const META = 'io.modelcontextprotocol/'
  const envelope = { [`${META}protocolVersion`]: REVISION, [`${META}clientCapabilities`]: {} }
  const stateless = (
    method: string,
    params: object = {},
    headers: object = {},
    meta: object = envelope,
  ): Promise<Reply> =>
    post(request(method, { ...params, _meta: meta }), {
      'MCP-Protocol-Version': REVISION,
      'Mcp-Method': method,
      ...headers,
    })

  test('answers without a handshake', async () => {
    const { body } = await stateless('server/discover')
    expect(body.result).toMatchObject({
      resultType: 'complete',
      supportedVersions: [REVISION],
      capabilities: { tools: { listChanged: false } },
      _meta: { [`${META}serverInfo`]: { name: 'mem' } },
    })
    const list = (await stateless('tools/list')).body.result
    expect(list).toMatchObject({ resultType: 'complete', ttlMs: expect.any(Number), cacheScope: 'public' })
    expect(list.tools).toHaveLength(25)
    expect(list.tools[0]).toHaveProperty('outputSchema')
    const call = await stateless('tools/call', { name: 'mem_list_workspaces' }, { 'Mcp-Name': 'mem_list_workspaces' })
    expect(call.body.result).toMatchObject({ resultType: 'complete', isError: false, structuredContent: {} })
    const encoded = `=?base64?${Buffer.from('mem_list_workspaces').toString('base64')}?=`
    expect((await stateless('tools/call', { name: 'mem_list_workspaces' }, { 'Mcp-Name': encoded })).status).toBe(200)
  })

  test('refuses headers that do not repeat the body', async () => {
    const mismatch = { status: 400, body: { error: { code: -32020 } } }
    const list = (headers: object): Promise<Reply> => stateless('tools/list', {}, headers)
    expect(await list({ 'Mcp-Method': 'ping' })).toMatchObject(mismatch)
    expect(await list({ 'MCP-Protocol-Version': '2025-11-25' })).toMatchObject(mismatch)
    const bare = request('tools/list', { _meta: envelope })
    expect(await post(bare)).toMatchObject(mismatch)
    expect(await stateless('tools/call', { name: 'mem_recall' })).toMatchObject(mismatch)
    expect(await stateless('tools/call', { name: 'mem_recall' }, { 'Mcp-Name': 'mem_pin' })).toMatchObject(mismatch)
  })

  test('refuses what it does not know', async () => {
    const unknown = { [`${META}protocolVersion`]: '1900-01-01', [`${META}clientCapabilities`]: {} }
    expect(await stateless('tools/list', {}, { 'MCP-Protocol-Version': '1900-01-01' }, unknown)).toMatchObject({
      status: 400,
      body: { error: { code: -32022, data: { supported: [REVISION], requested: '1900-01-01' } } },
    })
    for (const method of ['ping', 'initialize', 'resources/list']) {
      expect(await stateless(method)).toMatchObject({ status: 404, body: { error: { code: -32601 } } })
    }
    const incomplete = { status: 400, body: { error: { code: -32602, data: { status: 400 } } } }
    expect(await stateless('tools/list', {}, {}, { [`${META}protocolVersion`]: REVISION })).toMatchObject(incomplete)
    expect(await stateless('tools/list', {}, {}, {})).toMatchObject(incomplete)
  })

  test('is spoken on a connection too, with key and agent in each request', async () => {
    const wire = await startSocket(api.url, KEY)
    const call = async (name: string, args: object, meta: object = {}): Promise<Record<string, unknown>> => {
      const params = { name, arguments: args, _meta: { ...envelope, ...meta } }
      return (await wire.call('tools/call', params)).result.structuredContent
    }
    const { id: workspace_id } = await call('mem_create_workspace', { name: 'stateless' })
    const write = { workspace_id, agent_id: 'agent_other', content: 'x' }
    expect(await call('mem_imprint', write, { agentId: 'agent_meta' })).toMatchObject({
      written_by_agent_id: 'agent_meta',
    })
    expect(await call('mem_imprint', write)).toMatchObject({ written_by_agent_id: 'agent_other' })
    await wire.close()
  })
})
