import { Client } from 'undici'
import { type RunningServer, startServer } from '../../test/support/server.ts'

/** A server with one workspace, and connections to it. */
export interface BenchServer extends RunningServer {
  /** POSTs to a path of the workspace over the connection of that number, and gives the answer. */
  // oxlint-disable-next-line typescript/no-explicit-any -- benchmarks look at what came
  post(path: string, body: object, client?: number): Promise<any>
}

/**
 * In a workspace of its own unless one is named.
 * BENCH_NODE_OPTIONS are options of the server's process, for example `--import ./profile.mjs`.
 */
export async function startBenchServer(directory: string, workspaceId?: string): Promise<BenchServer> {
  const server = await startServer({ directory, env: { NODE_OPTIONS: process.env['BENCH_NODE_OPTIONS'] ?? '' } })
  const clients: Client[] = []
  const send = async (path: string, body: object, client = 0) => {
    const connection = (clients[client] ??= new Client(server.url))
    const headers = { 'Content-Type': 'application/json', 'Mem-Agent-Id': 'agent_bench' }
    const answer = await connection.request({ method: 'POST', path: `/v1${path}`, headers, body: JSON.stringify(body) })
    const json = JSON.parse(await answer.body.text())
    if (answer.statusCode >= 300) throw new Error(`${path}: ${JSON.stringify(json)}`)
    return json
  }
  const workspace = workspaceId ?? (await send('/workspaces', { name: 'bench' })).id
  return {
    ...server,
    post: (path, body, client) => send(`/workspaces/${workspace}${path}`, body, client),
    stop: async () => {
      await Promise.all(clients.map((client) => client.close()))
      return server.stop()
    },
  }
}
