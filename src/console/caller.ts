import type { FastifyRequest } from 'fastify'
import type { Caller } from '../memory/caller.ts'
import type { Console } from './settings.ts'

export const CONSOLE_AGENT = 'ui-admin'

/** Who acts when somebody acts here: agent `ui-admin`, user `console`. Contract: memory.md 1.9, 1.10. */
export function callerOf({ settings }: Console, request: FastifyRequest, signal: AbortSignal): Caller {
  const userAgent = request.headers['user-agent']
  return {
    requestId: request.id,
    startedAt: request.startedAt,
    agentId: CONSOLE_AGENT,
    ...(settings.apiKeyId !== undefined && { apiKeyId: settings.apiKeyId }),
    userId: 'console',
    ip: request.ip,
    ...(userAgent !== undefined && { userAgent }),
    signal,
  }
}

/** Lets the console's agent write in a workspace. @throws agent_verification_failed 401 when it was deactivated. */
export const admitConsole = ({ service }: Console, caller: Caller, workspaceId: string): Promise<void> =>
  service.agents.admit(caller, workspaceId, { agentId: CONSOLE_AGENT, provider: undefined, proof: undefined })
