import type * as z from 'zod'
import { BodyError, refuseBad } from '../../http/json-body.ts'
import { describeFault } from '../../http/validation.ts'
import type { Caller } from '../caller.ts'
import { invalidInput, type MemoryError } from '../errors.ts'
import type { Claim } from '../identity.ts'
import type { Workspace } from '../model.ts'
import type { OperationName } from './operations.ts'

/** A request that has passed the checks of its route. */
export interface RouteRequest {
  caller: Caller
  /** The workspace of the path, or in multi-tenant mode of `X-Mem-Workspace`; only on routes inside one. */
  workspace: Workspace
  param: (name: string) => string
  query: (name: string) => string | undefined
  /** The expected watermark of `If-Match`. */
  ifMatch: string | undefined
  /** Of the agent that the request names, if any; verified. */
  claim: Claim | undefined
  /** The workspace that `X-Mem-Workspace` names, in multi-tenant mode. */
  tenant: string | undefined
}

interface RouteFacts {
  operation: OperationName
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below `/v1`; `:name` is a parameter. */
  path: string
  /** `required`: Mem-Agent-Id or 400; `optional`: verified when named; absent: not read. */
  agent?: 'required' | 'optional'
  /** Answers 501 without a graph store. */
  graph?: true
  status?: 201 | 204
  /** Honours Idempotency-Key. */
  idempotent?: true
  /** The key of the answer that holds the watermark for the ETag. */
  etag?: 'watermark' | 'head_watermark'
}

/** A route as data; the pipeline does its checks in the order of memory.md 2.1. */
export interface Route extends RouteFacts {
  /** Of the body, where it reads one. */
  body?: z.ZodType
  handle: (request: RouteRequest, body: unknown) => Promise<unknown>
}

export const route = (facts: RouteFacts, handle: (request: RouteRequest) => Promise<unknown>): Route => ({
  ...facts,
  handle,
})

/** A route that reads a body by a schema. */
export const bodyRoute = <Body>(
  facts: RouteFacts,
  body: z.ZodType<Body>,
  handle: (request: RouteRequest, body: Body) => Promise<unknown>,
): Route => ({
  ...facts,
  body,
  handle: async (request, raw) => handle(request, parseWith(body, raw)),
})

/** Names the place at fault, where there is one. */
export const badBody = ({ message, field }: BodyError): MemoryError =>
  invalidInput(field === undefined ? message : `${field}: ${message}`, field)

/** For JSON that came otherwise than as the body of a request. @throws invalid_input 400 for U+0000, half of a surrogate pair, too much depth. */
export function refuseBadText(value: unknown): void {
  try {
    refuseBad(value, true)
  } catch (error) {
    throw error instanceof BodyError ? badBody(error) : error
  }
}

/** @throws invalid_input 400 that names the field at fault. */
export function parseWith<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const { message, field } = describeFault(result.error, value)
  throw invalidInput(message, field)
}
