import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalidInput } from '../../memory/errors.ts'
import { csrfToken } from '../csrf.ts'
import { takeFlash } from '../flash.ts'
import { memoryMenu } from '../menu.ts'
import type { Console } from '../settings.ts'
import { render, type Frame } from '../view.ts'

type KernelSection = 'objectives' | 'runs' | 'approvals' | 'activity' | 'deployments'
export type Section = 'home' | 'workspaces' | 'audit' | 'reference' | 'settings' | KernelSection | ''

export interface PageRequest {
  param: (name: string) => string
  /** The parameter of the query, undefined when empty. */
  query: (name: string) => string | undefined
  request: FastifyRequest
}

export interface Page {
  template: string
  title: string
  data: object
  status?: number
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** A page of the console: what it tells, in the frame that all pages have. */
export const page =
  (console: Console, section: Section, build: (request: PageRequest) => Promise<Page>): Handler =>
  async (request, reply) => {
    const answer = await build(pageRequest(request))
    return sendPage(console, request, reply, section, answer)
  }

/** Renders a page in its frame and sends it; the note of the last action is shown with it, once. */
export function sendPage(
  console: Console,
  request: FastifyRequest,
  reply: FastifyReply,
  section: Section,
  { template, title, data, status = 200 }: Page,
): FastifyReply {
  const frame = frameOf(console, request, reply, section, title)
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .send(render(template, data, frame))
}

const frameOf = (
  console: Console,
  request: FastifyRequest,
  reply: FastifyReply,
  section: Section,
  title: string,
): Frame => ({
  title,
  section,
  menu: memoryMenu({ hasGateway: console.settings.hasGateway, hasKernel: console.kernel !== undefined }),
  csrf: csrfToken(console.sessions, request, reply),
  hasSession: console.sessions !== undefined,
  flash: takeFlash(request, reply),
  now: console.clock.now(),
})

export const pageRequest = (request: FastifyRequest): PageRequest => ({
  param: (name) => valueOf(request.params, name) ?? '',
  query: (name) => {
    const value = valueOf(request.query, name)?.trim()
    return value === '' ? undefined : value
  },
  request,
})

/** @throws invalid_input 400 when it is given more than once. */
function valueOf(source: unknown, name: string): string | undefined {
  if (typeof source !== 'object' || source === null) return undefined
  const value: unknown = Reflect.get(source, name)
  if (Array.isArray(value)) throw invalidInput(`${name} is given more than once`, name)
  return typeof value === 'string' ? value : undefined
}
