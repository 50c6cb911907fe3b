import type { IncomingMessage } from 'node:http'
import { isListed } from './origin.ts'

const METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS'
const ASKED =
  'Authorization, Mem-Agent-Id, Mem-Identity-Provider, Mem-Identity-Proof, X-Mem-Workspace, If-Match, Idempotency-Key, X-Request-ID, Content-Type'
const EXPOSED = 'X-Request-ID, ETag'

/** Clients of the tool server over streamable HTTP send and read headers of that protocol, to this path alone. */
const TOOLS = {
  path: /^\/mcp(?:\?|$)/,
  asked: `${ASKED}, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID`,
  exposed: `${EXPOSED}, Mcp-Session-Id`,
}

/**
 * What lets pages of listed origins ask. Contract: memory.md 2.7.
 * @param isOpen any header may be sent and read, as clients of models have many of their own
 */
export function corsHeaders(
  { headers, url = '' }: IncomingMessage,
  allowed: readonly string[],
  isOpen: boolean,
): Record<string, string> {
  const { origin, 'access-control-request-headers': wanted = ASKED } = headers
  if (origin === undefined || !isListed(origin, allowed)) return { Vary: 'Origin' }
  const { asked, exposed } = TOOLS.path.test(url) ? TOOLS : { asked: ASKED, exposed: EXPOSED }
  return {
    Vary: 'Origin',
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Methods': METHODS,
    'Access-Control-Allow-Headers': isOpen ? wanted : asked,
    'Access-Control-Expose-Headers': isOpen ? '*' : exposed,
    'Access-Control-Max-Age': '86400',
  }
}
