import type { RunningServer } from '../support/server.ts'

export interface Reply {
  status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  body: any
}

/** Calls a path below `/v1`; undefined when the server went away before it answered. */
export async function tryCall(
  server: RunningServer,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply | undefined> {
  try {
    const response = await fetch(`${server.url}/v1${path}`, {
      method,
      headers: { 'Mem-Agent-Id': 'agent_fault', 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

/** As `tryCall`, of a server that must answer. */
export async function call(...args: Parameters<typeof tryCall>): Promise<Reply> {
  const reply = await tryCall(...args)
  if (!reply) throw new Error(`no answer to ${args[1]} ${args[2]}:\n${args[0].output()}`)
  return reply
}

/** The id of a new workspace. */
export const createWorkspace = async (server: RunningServer): Promise<string> =>
  (await call(server, 'POST', '/workspaces', { name: 'faults' })).body.id
