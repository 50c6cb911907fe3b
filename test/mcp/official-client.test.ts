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
let api: MemoryApi
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'secret' } })
})
afterAll(async () => {
  await api.stop()
  rmSync(directory, { recursive: true, force: true })
})

const transports: Record<string, () => Transport> = {
  stdio: () =>
    new StdioClientTransport({
      command: process.execPath,
      args: [join(packageRoot, 'bin/mem.js'), 'mcp', '--data-dir', join(directory, 'data')],
      cwd: directory,
      env: { HOME: directory },
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
  test.each(Object.keys(eras))('with %s calls every tool, and gets answers that fit their schemas', async (era) => {
    const client = new Client({ name: 'test', version: '1' }, eras[era])
    const transport = transports[name]?.()
    if (!transport) throw new Error('no transport')
    const faults: Error[] = []
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no other way
    client.onerror = (fault) => void faults.push(fault)
    await client.connect(transport)
    expect(client.getServerVersion()).toMatchObject({ name: 'mem' })
    const { tools } = await client.listTools()
    expect(tools).toHaveLength(25)
    const calls = await callEveryTool(async (tool, args) => {
      const { structuredContent } = await client.callTool({ name: tool, arguments: args })
      return Object.fromEntries(Object.entries(Object(structuredContent)))
    })
    expect(Object.keys(calls)).toHaveLength(25)
    await expect(
      client.callTool({ name: 'mem_get_workspace', arguments: { workspace_id: 'ws_x' } }),
    ).rejects.toMatchObject({
      code: -32603,
      data: { error_code: 'not_found', status: 404 },
    })
    await client.close()
    expect(faults).toEqual([])
  })
})
