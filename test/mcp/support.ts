import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { WebSocket } from 'undici'
import { afterAll } from 'vitest'
import { serveTools } from '../../src/app/tools.ts'
import { loadConfig } from '../../src/config/load.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
export type Answer = any

/** One side of a connection to the tool server; answers come in the order of `next`. */
export interface Wire {
  /** Sends text as one frame. */
  write(frame: string): void
  /** Sends bytes as they are: a binary message, or a line. */
  writeBytes(bytes: Uint8Array): void
  /** The next frame that came back. */
  next(): Promise<Answer>
  /** Sends a request and gives the answer with its id; others stay for `next`. */
  call(method: string, params?: object): Promise<Answer>
  /** Ends the connection, and gives the frames nobody asked for. */
  close(): Promise<Answer[]>
}

/** Starts memory services, which end with the tests of the file. */
export function startsServices() {
  const open: MemoryApi[] = []
  afterAll(() => Promise.all(open.map((api) => api.stop())))
  return async (env: Record<string, string>, dataDir?: string): Promise<MemoryApi> => {
    const api = await startMemoryApi({ dialect: 'sqlite', env, ...(dataDir !== undefined && { dataDir }) })
    open.push(api)
    return api
  }
}

/** Calls a tool and gives its answer. @throws when it fails. */
export async function callTool(wire: Wire, name: string, args: object): Promise<Answer> {
  const { result, error } = await wire.call('tools/call', { name, arguments: args })
  if (error) throw new Error(`${name}: ${JSON.stringify(error)}`)
  return JSON.parse(result.content[0].text)
}

/** `mem mcp` inside this process, over new stores. */
export function startStdio({ env = {} }: { env?: Record<string, string> } = {}): Wire {
  const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-mcp-'))
  const config = loadConfig({ env: { HOME: dataDir, MEM_DATA_DIR: dataDir, ...env }, cwd: dataDir })
  const input = new PassThrough()
  const inbox = new Inbox()
  const quiet = { ...config, telemetry: { ...config.telemetry, log_level: 'error' as const } }
  const ended = serveTools(quiet, input, (line) => inbox.put(line))
  return wireOf(inbox, {
    write: (frame) => input.write(typeof frame === 'string' ? `${frame}\n` : frame),
    close: async () => {
      input.end()
      await ended
      rmSync(dataDir, { recursive: true, force: true })
    },
  })
}

/** A WebSocket to a server; rejects when the upgrade is refused. */
export async function startSocket(url: string, headers: Record<string, string> = {}): Promise<Wire> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/mcp`, { headers })
  const inbox = new Inbox()
  socket.addEventListener('message', (event) => inbox.put(String(event.data)))
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new Error('the upgrade was refused')))
  })
  return wireOf(inbox, {
    write: (frame) => socket.send(frame),
    close: async () => {
      if (socket.readyState === WebSocket.CLOSED) return
      const closed = new Promise((resolve) => socket.addEventListener('close', resolve))
      socket.close()
      await closed
    },
  })
}

let lastId = 0

function wireOf(inbox: Inbox, ends: { write(frame: string | Uint8Array): unknown; close(): Promise<void> }): Wire {
  return {
    write: (frame) => void ends.write(frame),
    writeBytes: (bytes) => void ends.write(bytes),
    next: () => inbox.take(() => true),
    call: (method, params) => {
      const id = ++lastId
      ends.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      return inbox.take((answer) => answer.id === id)
    },
    close: async () => {
      await ends.close()
      return inbox.rest
    },
  }
}

/** Frames that came, and those who wait for one. */
class Inbox {
  readonly rest: Answer[] = []
  readonly #waiting: { wants: (answer: Answer) => boolean; give: (answer: Answer) => void }[] = []

  put(text: string): void {
    const answer: Answer = JSON.parse(text)
    const at = this.#waiting.findIndex(({ wants }) => wants(answer))
    const [waiter] = at < 0 ? [] : this.#waiting.splice(at, 1)
    if (waiter) waiter.give(answer)
    else this.rest.push(answer)
  }

  take(wants: (answer: Answer) => boolean): Promise<Answer> {
    const at = this.rest.findIndex(wants)
    const [answer] = at < 0 ? [] : this.rest.splice(at, 1)
    return answer === undefined ? new Promise((give) => this.#waiting.push({ wants, give })) : Promise.resolve(answer)
  }
}
