/** Other memory stores, installed beside the project at first use and driven the way their users do. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startModelServer, vectorOf } from './model-server.ts'
import { peerPackages } from './peer-packages.ts'
import { textOf } from './words.ts'

const PACKAGES = ['@modelcontextprotocol/server-memory', '@modelcontextprotocol/sdk', 'mem0ai']

export interface Peer {
  name: string
  /** The process that does the work, where it is not this one. */
  pid?: number
  store(text: string): Promise<unknown>
  close(): Promise<void>
}

const modules = (): string => peerPackages('memory', PACKAGES)

const load = async <Module>(path: string): Promise<Module> =>
  (await import(pathToFileURL(join(modules(), path)).href)) as Module

interface ToolClient {
  connect(transport: { pid: number | null }): Promise<void>
  callTool(call: { name: string; arguments: object }): Promise<{ isError?: boolean }>
  close(): Promise<void>
}

interface ToolSdk {
  Client: new (info: { name: string; version: string }) => ToolClient
}

interface StdioSdk {
  StdioClientTransport: new (start: { command: string; args: string[]; env: Record<string, string> }) => {
    pid: number | null
  }
}

/** The reference server of the tools protocol: a graph in one JSONL file, which every call reads and writes whole. */
export async function startServerMemory(directory: string, memories: number): Promise<Peer> {
  const { Client } = await load<ToolSdk>('@modelcontextprotocol/sdk/dist/esm/client/index.js')
  const { StdioClientTransport } = await load<StdioSdk>('@modelcontextprotocol/sdk/dist/esm/client/stdio.js')
  const file = join(directory, 'memory.jsonl')
  let next = 0
  const entity = (text: string) => ({ name: `note ${next++}`, entityType: 'note', observations: [text] })
  const lines = Array.from({ length: memories }, (_, i) =>
    JSON.stringify({ type: 'entity', ...entity(textOf(-i, 20)) }),
  )
  writeFileSync(file, lines.join('\n'))
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(modules(), '@modelcontextprotocol/server-memory/dist/index.js')],
    env: { MEMORY_FILE_PATH: file },
  })
  const client = new Client({ name: 'bench', version: '1.0.0' })
  await client.connect(transport)
  return {
    name: 'server-memory (stdio)',
    ...(transport.pid !== null && { pid: transport.pid }),
    store: async (text) => {
      const answer = await client.callTool({ name: 'create_entities', arguments: { entities: [entity(text)] } })
      if (answer.isError === true) throw new Error(JSON.stringify(answer))
    },
    close: () => client.close(),
  }
}

interface Mem0 {
  add(text: string, options: { userId: string }): Promise<unknown>
  vectorStore: { insert(vectors: number[][], ids: string[], payloads: object[]): Promise<void> }
}

const DIMENSION = 384

/** The library with its local stores; a model on this machine answers at once, so that the library itself is measured. */
export async function startMem0(directory: string, memories: number): Promise<Peer> {
  process.env['MEM0_TELEMETRY'] = 'false'
  const { Memory } = await load<{ Memory: new (config: object) => Mem0 }>('mem0ai/dist/oss/index.mjs')
  const model = await startModelServer(DIMENSION)
  const endpoint = { apiKey: 'none', baseURL: model.url }
  const memory = new Memory({
    llm: { provider: 'openai', config: { ...endpoint, model: 'stand-in' } },
    embedder: { provider: 'openai', config: { ...endpoint, model: 'stand-in', embeddingDims: DIMENSION } },
    vectorStore: {
      provider: 'memory',
      config: { collectionName: 'bench', dimension: DIMENSION, dbPath: join(directory, 'vectors.db') },
    },
    historyDbPath: join(directory, 'history.db'),
  })
  await memory.add('the first', { userId: 'bench' })
  for (let start = 0; start < memories; start += 1000) {
    const numbers = Array.from({ length: 1000 }, (_, i) => start + i)
    await memory.vectorStore.insert(
      numbers.map((number) => vectorOf(`${number}`, DIMENSION)),
      numbers.map((number) => `note-${number}`),
      numbers.map((number) => ({ data: textOf(-number, 20), user_id: 'bench' })),
    )
  }
  return {
    name: 'mem0ai (library, stand-in model)',
    store: (text) => memory.add(text, { userId: 'bench' }),
    close: () => model.close(),
  }
}
