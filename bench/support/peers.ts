/** Other memory stores, installed beside the project at first use and driven the way their users do. */
import { existsSync, writeFileSync } from 'node:fs'
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
  callTool(call: { name: string; arguments: object }): Promise<{
    isError?: boolean
    structuredContent?: Record<string, unknown>
  }>
  close(): Promise<void>
}

/** A program that serves tools over its standard streams, and the client that the peers' users have. */
export interface ToolServer {
  pid: number | undefined
  /** The answer as a value. @throws when the tool refuses */
  call(name: string, args: object): Promise<Record<string, unknown>>
  close(): Promise<void>
}

interface ToolSdk {
  Client: new (info: { name: string; version: string }) => ToolClient
}

interface StdioSdk {
  StdioClientTransport: new (start: {
    command: string
    args: string[]
    env: Record<string, string>
    stderr: 'ignore'
  }) => {
    pid: number | null
  }
}

/** Starts the program and makes the handshake. */
export async function startToolServer(program: string[], env: Record<string, string>): Promise<ToolServer> {
  const { Client } = await load<ToolSdk>('@modelcontextprotocol/sdk/dist/esm/client/index.js')
  const { StdioClientTransport } = await load<StdioSdk>('@modelcontextprotocol/sdk/dist/esm/client/stdio.js')
  const transport = new StdioClientTransport({ command: process.execPath, args: program, env, stderr: 'ignore' })
  const client = new Client({ name: 'bench', version: '1.0.0' })
  await client.connect(transport)
  return {
    pid: transport.pid ?? undefined,
    call: async (name, args) => {
      const answer = await client.callTool({ name, arguments: args })
      if (answer.isError === true) throw new Error(JSON.stringify(answer))
      return answer.structuredContent ?? {}
    },
    close: () => client.close(),
  }
}

/** What server-memory keeps a note as. */
export const entityOf = (name: string, text: string): object => ({ name, entityType: 'note', observations: [text] })

/** The reference server of the tools protocol: a graph in one JSONL file, which every call reads and writes whole. */
export function startServerMemoryTools(directory: string, notes: readonly object[]): Promise<ToolServer> {
  const file = join(directory, 'memory.jsonl')
  if (!existsSync(file))
    writeFileSync(file, notes.map((note) => JSON.stringify({ type: 'entity', ...note })).join('\n'))
  const program = join(modules(), '@modelcontextprotocol/server-memory/dist/index.js')
  return startToolServer([program], { MEMORY_FILE_PATH: file })
}

export async function startServerMemory(directory: string, memories: number): Promise<Peer> {
  const notes = Array.from({ length: memories }, (_, i) => entityOf(`note ${i}`, textOf(-i, 20)))
  const { pid, call, close } = await startServerMemoryTools(directory, notes)
  let next = memories
  return {
    name: 'server-memory (stdio)',
    ...(pid !== undefined && { pid }),
    store: (text) => call('create_entities', { entities: [entityOf(`note ${next++}`, text)] }),
    close,
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
