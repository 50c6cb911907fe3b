import type { FastifyReply } from 'fastify'
import type * as z from 'zod'
import { describeFault } from '../../http/validation.ts'
import type { Caller, ProjectScope } from '../caller.ts'
import { invalidRequest } from '../errors.ts'
import type { FlagName, Permission, Project } from '../model.ts'

/** A request that has passed the checks of its route. */
export interface RestRequest {
  /** Who asks; only behind a session. */
  caller: Caller
  /** The project of the path, which the caller may read; only on routes inside one. */
  project: Project
  scope: ProjectScope
  param: (name: string) => string
  /** A whole number in the path. @throws not_found 404 of `resource` when it is none */
  id: (name: string, resource: string) => number
  query: (name: string) => string | undefined
  /** Of the connection. */
  address: string
  /** Whether the client speaks TLS, with us or with the proxy in front. */
  isSecure: boolean
  /** For what the head of the answer tells beyond the route. */
  reply: FastifyReply
}

/** An answer that is sent while it is made: an export. */
export class StreamedAnswer {
  readonly type: string
  readonly fileName: string
  readonly parts: AsyncIterable<string>

  constructor(type: string, fileName: string, parts: AsyncIterable<string>) {
    this.type = type
    this.fileName = fileName
    this.parts = parts
  }
}

interface RouteFacts {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below `/rest/v1`; `:name` is a parameter, `:project_id` is looked up and must be readable. */
  path: string
  /** Whom the route serves: everyone, every session, an admin, or who may do this in the project. */
  needs: 'nothing' | 'session' | 'admin' | Permission
  /** Of the organization; 403 while it is off. */
  flag?: FlagName
  status?: 201 | 204
  /** No body is as good as an empty object. */
  mayBeEmpty?: true
  /** Refuses by the record that the path names, before the body is looked at. @throws not_found 404, forbidden 403 */
  requires?: (request: RestRequest) => Promise<unknown>
}

/** A route as data; the pipeline does its checks in the order of git-host.md 2.1. */
export interface Route extends RouteFacts {
  /** Of the body, where it reads one. */
  body?: z.ZodType
  /** What it gives is sent as JSON, or as it comes. */
  handle: (request: RestRequest, body: unknown) => Promise<unknown>
}

export const route = (facts: RouteFacts, handle: (request: RestRequest) => Promise<unknown>): Route => ({
  ...facts,
  handle,
})

/** A route that reads a body by a schema. */
export const bodyRoute = <Body>(
  facts: RouteFacts,
  body: z.ZodType<Body>,
  handle: (request: RestRequest, body: Body) => Promise<unknown>,
): Route => ({
  ...facts,
  body,
  handle: async (request, raw) => handle(request, parseRequest(body, raw)),
})

/** @throws invalid_request 400 that names the field at fault. */
export function parseRequest<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const { message, field } = describeFault(result.error, value)
  throw invalidRequest(message, field)
}
