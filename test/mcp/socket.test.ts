import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { get, request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { callTool, startsServices, startSocket } from './support.ts'

const KEY = { Authorization: 'Bearer secret' }

const start = startsServices()

/** What the server says to a wish for a WebSocket. */
async function upgradeStatus(to: MemoryApi, headers: Record<string, string> = {}, path = '/mcp'): Promise<number> {
  const { socket, statusCode = 0 } = await upgrade(to, headers, path)
  socket.destroy()
  return statusCode
}

async function upgrade(to: MemoryApi, headers: Record<string, string>, path = '/mcp'): Promise<IncomingMessage> {
  const key = { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version': '13' }
  const wish = get(to.url + path, { headers: { Upgrade: 'websocket', Connection: 'Upgrade', ...key, ...headers } })
  const [response]: IncomingMessage[] = await Promise.race([once(wish, 'response'), once(wish, 'upgrade')])
  if (!response) throw new Error('no answer')
  return response.resume()
}

let api: MemoryApi
beforeAll(async () => {
  api = await start({ MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'secret', MEM_SERVER_TIMEOUT: '1s' })
})

describe('memory#150 WebSocket', () => {
  test('no bearer, or a wrong one, is refused at the upgrade; the right one suffices', async () => {
    expect(await upgradeStatus(api)).toBe(401)
    expect(await upgradeStatus(api, { Authorization: 'Bearer wrong' })).toBe(401)
    expect(await upgradeStatus(api, KEY)).toBe(101)
    const wire = await startSocket(api.url, KEY)
    expect((await wire.call('ping')).result).toEqual({})
    expect((await wire.call('initialize', {})).error).toBeUndefined()
    expect((await wire.call('initialize', { apiKey: 'secret' })).error).toBeUndefined()
    expect((await wire.call('initialize', { apiKey: 'wrong' })).error.code).toBe(-32001)
    await wire.close()
  })

  test('memory#120 an upgrade has the request id too', async () => {
    for (const [sent, returned] of [
      ['req-7', 'req-7'],
      ['', expect.stringMatching(/^req_/)],
    ]) {
      const { socket, headers, statusCode } = await upgrade(api, { ...KEY, 'X-Request-ID': String(sent) })
      socket.destroy()
      expect([statusCode, headers['x-request-id']]).toEqual([101, returned])
    }
  })

  test('a refused upgrade leaves no connection behind', async () => {
    const { socket, statusCode } = await upgrade(api, {})
    expect(statusCode).toBe(401)
    if (!socket.destroyed) await once(socket, 'close')
  })

  test('the connection outlives the request timeout', async () => {
    const wire = await startSocket(api.url, KEY)
    // A request that begins later meets its limit, by when the connection is older than that.
    const late = httpRequest(`${api.url}/mcp`, { method: 'POST', headers: { ...KEY, 'Content-Length': 2 } })
    late.flushHeaders()
    const [refused]: IncomingMessage[] = await once(late, 'response')
    expect(refused && (await text(refused))).toContain('did not arrive in time')
    late.destroy()
    expect((await wire.call('ping')).result).toEqual({})
    expect(await callTool(wire, 'mem_list_workspaces', {})).toHaveProperty('workspaces')
    await wire.close()
  })

  test('a handshake that cannot become a WebSocket is told in an envelope, and logged', async () => {
    for (const bad of [{ 'Sec-WebSocket-Version': '12' }, { 'Sec-WebSocket-Key': 'short' }]) {
      const refused = await upgrade(api, { ...KEY, ...bad })
      expect(refused.statusCode).toBe(400)
      expect(refused.headers['content-type']).toContain('application/json')
      expect(refused.headers).toHaveProperty('x-request-id')
    }
  })

  test('headers of the upgrade pin the agent', async () => {
    const wire = await startSocket(api.url, { ...KEY, 'Mem-Agent-Id': 'agent_header' })
    const { id } = await callTool(wire, 'mem_create_workspace', { name: 'headers' })
    const args = { workspace_id: id, agent_id: 'agent_other', content: 'x' }
    expect(await callTool(wire, 'mem_imprint', args)).toMatchObject({ written_by_agent_id: 'agent_header' })
    await wire.close()
    const unproven = { 'Mem-Agent-Id': 'agent_x', 'Mem-Identity-Provider': 'vendor_session' }
    expect(await upgradeStatus(api, { ...KEY, ...unproven })).toBe(401)
    expect(await upgradeStatus(api, KEY, '/v1/workspaces')).toBe(200)
  })

  test('without server.mcp_enable every way in is 404', async () => {
    const plain = await start({})
    expect(await upgradeStatus(plain)).toBe(404)
    for (const method of ['GET', 'POST', 'DELETE']) expect((await plain.call(method, '//mcp')).status).toBe(404)
  })

  test('what was applied when the server ended was answered', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-ending-'))
    const ending = await startMemoryApi({ dialect: 'sqlite', dataDir, env: { MEM_MCP_ENABLE: 'true' } })
    const workspace_id = await ending.workspace()
    const wire = await startSocket(ending.url)
    for (let id = 0; id < 200; id++) {
      const args = { workspace_id, agent_id: 'agent_x', content: `note ${id}` }
      wire.write(
        JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'mem_imprint', arguments: args } }),
      )
    }
    await wire.next()
    await ending.stop()
    const answered = 1 + (await wire.close()).length
    const again = await start({}, dataDir)
    const { body } = await again.call('GET', `/workspaces/${workspace_id}/memories?limit=1000`)
    expect(body.memories).toHaveLength(answered)
  })

  test('a client that says nothing does not keep the server from ending', async () => {
    const ending = await startMemoryApi({ dialect: 'sqlite', env: { MEM_MCP_ENABLE: 'true' } })
    const { socket } = await upgrade(ending, {})
    const left = once(socket.resume(), 'end')
    await ending.stop()
    expect(await left).toEqual([])
  })

  test('a binary message is a bad frame', async () => {
    const wire = await startSocket(api.url, KEY)
    wire.writeBytes(Buffer.from('{}'))
    expect(await wire.next()).toMatchObject({ id: null, error: { code: -32600 } })
    expect((await wire.call('ping')).result).toEqual({})
    await wire.close()
  })
})

test('in multi-tenant mode the header binds the connection', async () => {
  const many = await start({ MEM_MCP_ENABLE: 'true', MEM_MODE: 'multi-tenant' })
  const [mine, other] = [await many.workspace(), await many.workspace()]
  const wire = await startSocket(many.url, { 'X-Mem-Workspace': mine })
  expect((await callTool(wire, 'mem_list_workspaces', {})).workspaces).toMatchObject([{ id: mine }])
  expect(await callTool(wire, 'mem_get_workspace', { workspace_id: mine })).toMatchObject({ id: mine })
  const { error } = await wire.call('tools/call', { name: 'mem_get_workspace', arguments: { workspace_id: other } })
  expect(error.data).toMatchObject({ error_code: 'not_found', status: 404 })
  const inOther = { headers: { 'X-Mem-Workspace': other } }
  const { body: pin } = await many.call('POST', `/workspaces/-/recall/pins`, { query: 'q' }, inOther)
  const foreign = await wire.call('tools/call', { name: 'mem_unpin', arguments: { pin_id: pin.pin_id } })
  expect(foreign.error.data).toMatchObject({ error_code: 'not_found', details: { resource: 'pin' } })
  await wire.close()
  const unbound = await startSocket(many.url)
  const missing = await unbound.call('tools/call', { name: 'mem_get_workspace', arguments: { workspace_id: mine } })
  expect(missing.error).toMatchObject({ code: -32603, data: { error_code: 'invalid_input', status: 400 } })
  await unbound.close()
})
