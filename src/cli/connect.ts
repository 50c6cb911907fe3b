import { MemoryClient } from '../client/memory-client.ts'
import type { Context } from './command.ts'
import { usageError } from './exit.ts'
import { DEFAULT_ENDPOINT } from './settings.ts'

/** A client of the server that the global flags name; `workspace` also goes as `X-Mem-Workspace` (memory.md 11.1). */
export function connect(context: Context, workspace = context.settings.workspace): MemoryClient {
  const { endpoint, apiKey, agentId, timeoutMs, verbose } = context.settings
  return new MemoryClient(endpoint, apiKey, {
    agentId,
    timeoutMs,
    headers: { 'User-Agent': 'mem-cli', ...(workspace !== undefined && { 'X-Mem-Workspace': workspace }) },
    ...(verbose && { fetch: traced(context) }),
  })
}

/** A client, and the workspace that the verb works in. */
export function connectWorkspace(context: Context): { client: MemoryClient; workspace: string } {
  const { workspace } = context.settings
  if (workspace === undefined) {
    throw usageError(
      'this command needs a workspace',
      'Pass --workspace <id> or set MEM_WORKSPACE; `mem workspaces list` shows them, ' +
        '`mem workspaces create --name notes` makes one.',
    )
  }
  return { client: connect(context), workspace }
}

/** For what tells the address, or calls it without the client library: refuses what the library does. @throws CliError (usage) */
export function checkEndpoint(endpoint: string): void {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const hint = 'Check --endpoint (MEM_ENDPOINT).'
  if (url?.username || url?.password || url?.search || url?.hash) {
    throw usageError('the endpoint must be a URL without user, password, query and fragment', hint)
  }
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw usageError(`the endpoint must be a URL such as ${DEFAULT_ENDPOINT}, not '${endpoint}'`, hint)
  }
}

/** `fetch` that tells on stderr what was asked, and how it went. */
export function traced({ io, settings }: Context): typeof fetch {
  const tell = (line: string): unknown => io.stderr.write(settings.color ? `\x1b[2m${line}\x1b[22m\n` : `${line}\n`)
  return async (input, init) => {
    tell(`> ${init?.method ?? 'GET'} ${input instanceof Request ? input.url : input.toString()}`)
    const start = performance.now()
    const response = await fetch(input, init)
    const elapsed = Math.round(performance.now() - start)
    tell(`< ${response.status} ${response.headers.get('x-request-id') ?? 'no request id'} ${elapsed} ms`)
    return response
  }
}
