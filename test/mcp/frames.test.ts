import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { callTool, startSocket, startStdio, type Wire } from './support.ts'

describe.each(['stdio', 'WebSocket'] as const)('memory#148 frames over %s', (transport) => {
  let api: MemoryApi | undefined
  let wire: Wire
  beforeAll(async () => {
    if (transport === 'WebSocket') api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_MCP_ENABLE: 'true' } })
    wire = api ? await startSocket(api.url) : startStdio()
  })
  afterAll(async () => {
    await api?.stop()
  })

  const error = (code: number, id: unknown = null) => ({
    jsonrpc: '2.0',
    id,
    error: { code, message: expect.any(String) },
  })
  const served = async (): Promise<void> => expect((await wire.call('ping')).result).toEqual({})

  test.each(['{', 'nonsense', '{"jsonrpc":"2.0","id":1,"method":"ping"', '"half', '{"a":1}}'])(
    'bad JSON %j is -32700, and the next frame is served',
    async (frame) => {
      wire.write(frame)
      expect(await wire.next()).toEqual(error(-32700))
      await served()
    },
  )

  test.each([
    ['7', null],
    ['null', null],
    ['"ping"', null],
    ['[]', null],
    ['{}', null],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', 1],
    ['{"jsonrpc":"2.0","id":2}', 2],
    ['{"jsonrpc":"2.0","id":3,"method":7}', 3],
    ['{"jsonrpc":"2.0","id":4,"method":"ping","params":"x"}', 4],
    ['{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', 4],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', null],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', null],
    ['{"jsonrpc":"2.0","id":5,"result":{}}', 5],
    ['{"jsonrpc":"2.0","id":6,"method":"ping","params":{"a":1e999}}', 6],
    [`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`, 7],
  ])('bad frame %.60s is -32600', async (frame, id) => {
    wire.write(frame)
    expect(await wire.next()).toEqual(error(-32600, id))
    await served()
  })

  test('a frame above 4 MiB is -32600, one of 4 MiB is served', async () => {
    const frame = (size: number): string => {
      const empty = JSON.stringify({ jsonrpc: '2.0', id: 'big', method: 'ping', params: { pad: '' } })
      return empty.replace('""', `"${'x'.repeat(size - empty.length)}"`)
    }
    wire.write(frame(4 * 1024 * 1024 + 1))
    expect(await wire.next()).toEqual(error(-32600))
    wire.write(frame(4 * 1024 * 1024))
    expect(await wire.next()).toEqual({ jsonrpc: '2.0', id: 'big', result: {} })
  })

  test('unknown methods are -32601', async () => {
    for (const method of ['resources/list', 'server/discover', '']) {
      expect((await wire.call(method)).error.code).toBe(-32601)
    }
  })

  test('notifications are silent, known or not, and do nothing', async () => {
    for (const method of ['notifications/initialized', 'nonsense', 'ping']) {
      wire.write(JSON.stringify({ jsonrpc: '2.0', method }))
    }
    const params = { name: 'mem_create_workspace', arguments: { name: 'silent' } }
    wire.write(JSON.stringify({ jsonrpc: '2.0', method: 'tools/call', params }))
    wire.write(JSON.stringify([{ jsonrpc: '2.0', method: 'notifications/initialized' }]))
    await served()
    expect(await callTool(wire, 'mem_list_workspaces', {})).toEqual({ workspaces: [] })
  })

  test('arrays are answered element-wise, in order', async () => {
    const message = (id: unknown, method: unknown): object => ({ jsonrpc: '2.0', id, method })
    wire.write(JSON.stringify([message('a', 'ping'), { jsonrpc: '2.0', method: 'x' }, 7, message('b', 'nonsense')]))
    expect(await wire.next()).toEqual([{ jsonrpc: '2.0', id: 'a', result: {} }, error(-32600), error(-32601, 'b')])
  })

  test('a bad message in an array spoils no other', async () => {
    wire.write(`[${'['.repeat(100_000)}${']'.repeat(100_000)},{"jsonrpc":"2.0","id":"c","method":"ping"}]`)
    expect(await wire.next()).toEqual([error(-32600), { jsonrpc: '2.0', id: 'c', result: {} }])
  })

  test('20 concurrent creates all survive', async () => {
    const { id } = await callTool(wire, 'mem_create_workspace', { name: 'crowd' })
    const contents = Array.from({ length: 20 }, (_, i) => `Text ${i}.`)
    await Promise.all(
      contents.map((content) => callTool(wire, 'mem_imprint', { workspace_id: id, agent_id: 'agent_t', content })),
    )
    const { memories } = await callTool(wire, 'mem_list_memories', { workspace_id: id, limit: 100 })
    expect(memories.map((memory: { content: string }) => memory.content).sort()).toEqual(contents.sort())
  })

  test('and nothing was said that nobody asked for', async () => {
    expect(await wire.close()).toEqual([])
  })
})

test('a line that is not UTF-8 is -32700, and the next is served', async () => {
  const wire = startStdio()
  wire.writeBytes(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff"}\n', 'latin1'))
  expect(await wire.next()).toMatchObject({ id: null, error: { code: -32700 } })
  expect((await wire.call('ping')).result).toEqual({})
  await wire.close()
})

test('lines may end with CR LF, be blank, and come in pieces or without a last end', async () => {
  const wire = startStdio()
  wire.write('\r\n  \r\n{"jsonrpc":"2.0","id":1,"method":"ping"}\r')
  expect(await wire.next()).toMatchObject({ id: 1, result: {} })
  expect(await wire.close()).toEqual([])
})
