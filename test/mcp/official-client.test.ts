import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  Client,
  StreamableHTTPClientTransport,
  type ClientOptions,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { WebSocket } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { startEmbeddingProvider, type EmbeddingProvider } from '../support/embedding-provider.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { callEveryTool } from './every-tool.ts'

const KEY = { Authorization: 'Bearer secret' }

/** The client has no transport over WebSockets of its own. */
class WebSocketTransport implements Transport {
  onmessage?: NonNullable<Transport['onmessage']>
  onclose?: NonNullable<Transport['onclose']>
  readonly #socket: WebSocket

  constructor(url: string) {
    this.#socket = new WebSocket(url, { headers: KEY })
  }

  start(): Promise<void> {
    this.#socket.addEventListener('message', ({ data }) => this.onmessage?.(JSON.parse(String(data))))
    this.#socket.addEventListener('close', () => this.onclose?.())
    return new Promise((resolve, reject) => {
      this.#socket.addEventListener('open', () => resolve())
      this.#socket.addEventListener('error', () => reject(new Error('no connection')))
    })
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#socket.send(JSON.stringify(message))
  }

  async close(): Promise<void> {
    this.#socket.close()
  }
}

const directory = mkdtempSync(join(tmpdir(), 'mem-test-client-'))
let provider: EmbeddingProvider
let embedding: Record<string, string>
let api: MemoryApi
beforeAll(async () => {
  provider = await startEmbeddingProvider()
  embedding = { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'none' }
  const env = { MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'secret', ...embedding }
  api = await startMemoryApi({ dialect: 'sqlite', env })
})
afterAll(async () => {
  await api.stop()
  await provider.stop()
  rmSync(directory, { recursive: true, force: true })
})

const transports: Record<string, () => Transport> = {
  stdio: () =>
    new StdioClientTransport({
      command: process.execPath,
      args: [join(packageRoot, 'bin/mem.js'), 'mcp', '--data-dir', join(directory, 'data')],
      cwd: directory,
      env: { HOME: directory, ...embedding },
      stderr: 'ignore',
    }),
  WebSocket: () => new WebSocketTransport(`${api.url.replace('http', 'ws')}/mcp`),
  'streamable HTTP': () =>
    new StreamableHTTPClientTransport(new URL(`${api.url}/mcp`), { requestInit: { headers: KEY } }),
}

const eras: Record<string, ClientOptions> = {
  handshake: {},
  'the stateless revision': { versionNegotiation: { mode: { pin: '2026-07-28' } } },
}

describe.each(Object.keys(transports))('the official client over %s', (name) => {
  describe.each(Object.keys(eras))('with %s', (era) => {
    let client: Client
    let transport: Transport
    const faults: Error[] = []
    beforeAll(async () => {
      const made = transports[name]?.()
      if (!made) throw new Error('no transport')
      transport = made
      client = new Client({ name: 'test', version: '1' }, eras[era])
      // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no other way
      client.onerror = (fault) => void faults.push(fault)
      await client.connect(transport)
    })
    afterAll(() => client.close())

    /** The answer as a value, which the client has held against the schema of the tool. */
    async function call(
      tool: string,
      args: Record<string, unknown>,
      signal?: AbortSignal,
    ): Promise<Record<string, unknown>> {
      const { structuredContent } = await client.callTool({ name: tool, arguments: args }, signal && { signal })
      return Object.fromEntries(Object.entries(Object(structuredContent)))
    }

    test('calls every tool, and gets answers that fit their schemas', async () => {
      expect(client.getServerVersion()).toMatchObject({ name: 'mem' })
      const { tools } = await client.listTools()
      expect(tools).toHaveLength(25)
      expect(Object.keys(await callEveryTool(call))).toHaveLength(25)
      expect(faults).toEqual([])
    })

    test('gets a refusal with its code and status', async () => {
      await expect(call('mem_get_workspace', { workspace_id: 'ws_x' })).rejects.toMatchObject({
        code: -32603,
        data: { error_code: 'not_found', status: 404 },
      })
    })

    test('cancels a call, which then has no effect', async () => {
      const { id } = await call('mem_create_workspace', { name: 'slow', embedding_model: 'openai:words-8' })
      provider.behave = () => 'hangs'
      const [asked, abandoned] = [provider.next('asked'), provider.next('abandoned')]
      const user = new AbortController()
      const args = { workspace_id: id, agent_id: 'agent_test', content: 'Rye bread.' }
      const slow = call('mem_imprint', args, user.signal)
      await asked
      user.abort()
      await expect(slow).rejects.toThrow('abort')
      await abandoned
      provider.recover()
      expect(await call('mem_list_memories', { workspace_id: id })).toEqual({ memories: [] })
    })

    test('sends nearly 4 MiB in one frame, and reads them again', async () => {
      const { id: workspace_id } = await call('mem_create_workspace', {
        name: 'large',
        embedding_model: 'noop:default',
      })
      const content = 'x'.repeat(4 * 1024 * 1024 - 2048)
      const { memory_id } = await call('mem_imprint', { workspace_id, agent_id: 'agent_test', content })
      const { memories } = await call('mem_list_memories', { workspace_id, limit: 1 })
      expect(memories).toMatchObject([{ id: memory_id, content }])
    })

    test('is served after a bad frame', async () => {
      await transport.send(Object({ jsonrpc: '2.0', id: {}, method: 7 })).catch(() => undefined)
      expect(await call('mem_list_workspaces', {})).toHaveProperty('workspaces')
    })
  })
})
