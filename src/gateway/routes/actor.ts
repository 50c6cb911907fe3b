import type { RestRequest } from '../../platform/routes/route.ts'
import type { Actor } from '../access.ts'

/** Where the management of the gateway lies below `/rest/v1`. */
export const GATEWAY = '/llm-gateway'

/** Who asks, with what the audit tells of the request. */
export const actorOf = ({ caller, address, reply: { request } }: RestRequest): Actor => ({
  ...caller,
  requestId: request.id,
  address,
  userAgent: request.headers['user-agent'],
})
