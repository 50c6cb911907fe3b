import type { IncomingMessage } from 'node:http'
import { isListed } from './origin.ts'

const METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS'
const ASKED =
  'Authorization, Mem-Agent-Id, Mem-Identity-Provider, Mem-Identity-Proof, X-Mem-Workspace, If-Match, Idempotency-Key, X-Request-ID, Content-Type'
const EXPOSED = 'X-Request-ID, ETag'

/**
 * What lets pages of listed origins ask. Contract: memory.md 2.7.
 * @param isOpen any header may be sent and read, as clients of models have many of their own
 */
export function corsHeaders(
  { headers }: IncomingMessage,
  allowed: readonly string[],
  isOpen: boolean,
): Record<string, string> {
  const { origin, 'access-control-request-headers': asked = ASKED } = headers
  if (origin === undefined || !isListed(origin, allowed)) return { Vary: 'Origin' }
  return {
    Vary: 'Origin',
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Methods': METHODS,
    'Access-Control-Allow-Headers': isOpen ? asked : ASKED,
    'Access-Control-Expose-Headers': isOpen ? '*' : EXPOSED,
    'Access-Control-Max-Age': '86400',
  }
}
