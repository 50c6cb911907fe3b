import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { header } from '../../http/header.ts'
import { BodyError, parseJsonObject } from '../../http/json-body.ts'
import { TOO_LARGE } from '../../http/listener.ts'
import type { Attribution } from '../change.ts'
import { invalid, KernelError } from '../errors.ts'
import type { Kernel } from '../service.ts'
import { checkedKey } from './handlers.ts'
import type { Incoming } from './route.ts'

/** What a request says beside its path and its token. Contract: kernel-1.md 1.1, 1.5. */

const JSON_TYPE = /^application\/(?:json|[\w.!#$&^-]+\+json) *(?:;|$)/i
export const NO_JSON = 'Content-Type must be application/json'
const ANONYMOUS = { type: 'user', id: 'anonymous' }
const CORRELATION_MAX = 128

/** @throws too_large, invalid for a body, key or correlation id that is not acceptable */
export async function readIncoming(
  kernel: Kernel,
  route: string,
  path: string,
  params: Readonly<Record<string, string>>,
  request: FastifyRequest,
): Promise<Incoming> {
  const isWrite = !route.startsWith('GET ')
  const body = isWrite ? readBody(request) : undefined
  const key = isWrite ? checkedKey(utf8Header(request, 'idempotency-key')) : undefined
  return {
    context: kernel.context,
    route,
    path,
    params,
    query: new URLSearchParams(request.url.slice((request.url + '?').indexOf('?'))),
    body,
    ...(key !== undefined && { idempotencyKey: key }),
    by: await attribute(kernel, request, isWrite ? utf8Header(request, 'x-correlation-id') : undefined),
  }
}

function readBody({ body, headers }: FastifyRequest): Record<string, unknown> {
  if (body === TOO_LARGE) throw new KernelError('too_large', 'the body is larger than 8 MiB')
  const type = headers['content-type']
  if (type !== undefined && !JSON_TYPE.test(type)) throw invalid(NO_JSON)
  if (!Buffer.isBuffer(body) || body.length === 0) return {}
  try {
    return parseJsonObject(body)
  } catch (error) {
    if (error instanceof BodyError) throw invalid(error.message)
    throw error
  }
}

/** Headers come as Latin-1; what is beyond ASCII was sent as UTF-8 bytes, unless it cannot have been. */
function utf8Header(request: FastifyRequest, name: string): string | undefined {
  const value = header(request, name)
  if (value === undefined) return undefined
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}

async function attribute(
  kernel: Kernel,
  request: FastifyRequest,
  correlationId: string | undefined,
): Promise<Attribution> {
  const host = await kernel.hostIdentity?.(request.raw)
  if (correlationId !== undefined && (correlationId.length > CORRELATION_MAX || /\p{Cc}/u.test(correlationId))) {
    throw invalid(`X-Correlation-ID must have ${CORRELATION_MAX} characters at most, and no control characters`)
  }
  return {
    ...(host ? { actor: host, actorSource: 'host' } : { actor: ANONYMOUS, actorSource: 'claimed' }),
    requestId: request.id,
    ...(correlationId && { correlationId }),
  }
}
