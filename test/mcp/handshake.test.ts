import { createHash } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { version } from '../../src/base/version.ts'
import { callTool, startStdio, type Wire } from './support.ts'

const open: Wire[] = []
const start = (env: Record<string, string> = {}): Wire => {
  const wire = startStdio({ env })
  open.push(wire)
  return wire
}
afterAll(() => Promise.all(open.map((wire) => wire.close())))

describe('memory#144 handshake', () => {
  test.each([
    [undefined, '2024-11-05'],
    ['2024-11-05', '2024-11-05'],
    ['2025-03-26', '2025-03-26'],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
    ['2026-07-28', '2024-11-05'],
    ['2099-01-01', '2024-11-05'],
    ['1.0', '2024-11-05'],
    [7, '2024-11-05'],
  ])('asked for %s it gives %s', async (asked, given) => {
    const { result } = await start().call('initialize', { protocolVersion: asked, clientInfo: { name: 'test' } })
    expect(result).toEqual({
      protocolVersion: given,
      capabilities: { tools: { listChanged: false } },
      serverInfo: { name: 'mem', version },
    })
  })

  test('without one, the tools are those of the oldest revision', async () => {
    const { result } = await start().call('tools/list')
    expect(Object.keys(result.tools[0])).toEqual(['name', 'description', 'inputSchema'])
  })

  test('annotations come with 2025-03-26, answer schemas and values with 2025-06-18', async () => {
    const wire = start()
    const keys = async (protocolVersion: string): Promise<string[]> => {
      await wire.call('initialize', { protocolVersion })
      return Object.keys((await wire.call('tools/list')).result.tools[0]).sort()
    }
    expect(await keys('2025-03-26')).toEqual(['annotations', 'description', 'inputSchema', 'name'])
    const { result: old } = await wire.call('tools/call', { name: 'mem_list_workspaces' })
    expect(old).toEqual({ content: [{ type: 'text', text: '{"workspaces":[]}' }], isError: false })
    expect(await keys('2025-06-18')).toEqual(['annotations', 'description', 'inputSchema', 'name', 'outputSchema'])
    const { result } = await wire.call('tools/call', { name: 'mem_list_workspaces' })
    expect(result.structuredContent).toEqual({ workspaces: [] })
  })
})

describe('memory#145 keyed stdio', () => {
  const unauthorized = { code: -32001, data: { error_code: 'unauthorized', status: 401, details: {} } }

  test('refuses every method before the key, and a wrong key', async () => {
    const wire = start({ MEM_API_KEY: 'secret' })
    for (const method of ['ping', 'tools/list', 'tools/call', 'server/discover', 'nonsense']) {
      expect((await wire.call(method)).error).toMatchObject(unauthorized)
    }
    for (const apiKey of [undefined, '', 'secre', 'secret ', 7]) {
      expect((await wire.call('initialize', { apiKey })).error).toMatchObject(unauthorized)
    }
    const messages = [{}, { apiKey: 'wrong' }].map(async (said) => (await wire.call('initialize', said)).error.message)
    expect(await Promise.all(messages)).toEqual([
      'initialize with apiKey first: this server has a key',
      'apiKey is not the key of this server',
    ])
    expect((await wire.call('ping')).error).toMatchObject(unauthorized)
  })

  test('serves with the right key, said in params or in _meta', async () => {
    for (const params of [{ apiKey: 'secret' }, { _meta: { apiKey: 'secret' } }]) {
      const wire = start({ MEM_API_KEY: 'secret' })
      expect((await wire.call('initialize', params)).result.protocolVersion).toBe('2024-11-05')
      expect((await wire.call('ping')).result).toEqual({})
      expect((await wire.call('initialize', { apiKey: 'wrong' })).error.code).toBe(-32001)
      expect((await wire.call('ping')).result).toEqual({})
    }
  })

  test('frames that follow the handshake without waiting are served', async () => {
    const wire = start({ MEM_API_KEY: 'secret' })
    const [first, second] = await Promise.all([wire.call('initialize', { apiKey: 'secret' }), wire.call('ping')])
    expect([first.error, second.result]).toEqual([undefined, {}])
  })

  test('without a key, any is good', async () => {
    expect((await start().call('initialize', { apiKey: 'whatever' })).error).toBeUndefined()
  })
})

describe('memory#149 pinned agent', () => {
  const proof = { session_id: 's-1', model: 'm-1' }
  const agentId = sessionAgent(proof)

  async function written(wire: Wire): Promise<{ workspace: string; writer: string }> {
    const { id } = await callTool(wire, 'mem_create_workspace', { name: 'pinned' })
    const args = { workspace_id: id, agent_id: 'agent_other', content: 'Rye bread.' }
    return { workspace: id, writer: (await callTool(wire, 'mem_imprint', args)).written_by_agent_id }
  }

  test('replaces agent_id in all writes', async () => {
    const wire = start()
    await wire.call('initialize', { agentId: 'agent_pinned' })
    const { workspace, writer } = await written(wire)
    expect(writer).toBe('agent_pinned')
    const { agents } = await callTool(wire, 'mem_list_agents', { workspace_id: workspace })
    const ids = agents.map((agent: { agent_id: string }) => agent.agent_id)
    expect(ids).toContain('agent_pinned')
    expect(ids).not.toContain('agent_other')
  })

  test('without it, agent_id goes through opaque', async () => {
    const wire = start()
    await wire.call('initialize', {})
    const { workspace, writer } = await written(wire)
    expect(writer).toBe('agent_other')
    const { agents } = await callTool(wire, 'mem_list_agents', { workspace_id: workspace })
    expect(agents).toContainEqual(expect.objectContaining({ agent_id: 'agent_other', identity_provider: 'opaque' }))
  })

  test('a good proof is taken, in params or in _meta, and only its hash is kept', async () => {
    for (const wrap of [(said: object) => said, (said: object) => ({ _meta: said })]) {
      const wire = start()
      const said = { agentId, identityProvider: 'vendor_session', identityProof: proof }
      expect((await wire.call('initialize', wrap(said))).error).toBeUndefined()
      const { workspace, writer } = await written(wire)
      expect(writer).toBe(agentId)
      const { agents } = await callTool(wire, 'mem_list_agents', { workspace_id: workspace })
      expect(agents[0]).toMatchObject({ identity_provider: 'vendor_session', identity_proof_hash: expect.any(String) })
      expect(JSON.stringify(agents)).not.toContain('s-1')
    }
  })

  test.each([
    ['no proof', agentId, undefined],
    ['half a proof', agentId, { session_id: 's-1' }],
    ['no object', agentId, 's-1'],
    ['the proof of another', agentId, { ...proof, session_id: 's-2' }],
    ['a reserved agent', 'agent_system', proof],
  ])('%s is refused, and the handshake has not happened', async (_, agent, identityProof) => {
    const wire = start({ MEM_API_KEY: 'secret' })
    const said = { agentId: agent, identityProvider: 'vendor_session', identityProof }
    const { error } = await wire.call('initialize', { apiKey: 'secret', ...said })
    expect(error).toMatchObject({ code: -32001, data: { error_code: 'agent_verification_failed', status: 401 } })
    expect((await wire.call('ping')).error.code).toBe(-32001)
  })

  test('a proof that is no object is refused whoever checks it, as in REST', async () => {
    const { error } = await start().call('initialize', { agentId: 'agent_a', identityProof: 's-1' })
    expect(error).toMatchObject({ code: -32001, data: { status: 401, details: { provider: 'opaque' } } })
  })

  test('a provider that is no name is refused', async () => {
    const { error } = await start().call('initialize', { agentId: 'agent_a', identityProvider: 7 })
    expect(error).toMatchObject({ code: -32602, data: { details: { field: 'identityProvider' } } })
  })

  test.each([[7], [''], ['a\nb'], ['a\ud800']])('%j is no agent id', async (bad) => {
    const { error } = await start().call('initialize', { agentId: bad })
    expect(error).toMatchObject({ code: -32602, data: { error_code: 'invalid_input', details: { field: 'agentId' } } })
  })
})

/** memory.md 16. */
function sessionAgent({ session_id, model }: { session_id: string; model: string }): string {
  const prompt = createHash('sha256').update('').digest()
  const digest = createHash('sha256').update(`${session_id}:${model}:`).update(prompt).digest()
  const bits = [...digest].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const letters = Array.from(
    { length: 16 },
    (_, i) => 'abcdefghijklmnopqrstuvwxyz234567'[parseInt(bits.slice(5 * i, 5 * i + 5), 2)],
  )
  return `agent_vendor_session_${letters.join('')}`
}
