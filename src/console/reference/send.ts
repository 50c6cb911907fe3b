import type { FastifyRequest } from 'fastify'
import { invalidInput, notFound } from '../../memory/errors.ts'
import { CONSOLE_AGENT } from '../caller.ts'
import type { Form } from '../form.ts'
import type { Console } from '../settings.ts'
import type { Operation, Parameter, Reference } from './document.ts'

/** More than this of an answer is cut, so that the page stays small. */
const SHOWN = 64 * 1024

/** What was sent, as a person repeats it. */
export interface Sent {
  method: string
  /** With its query. */
  path: string
  headers: Record<string, string>
  body: string | undefined
}

/** An answer of the API as the page shows it. */
export interface Answered {
  operation: Operation
  sent: Sent
  curl: string
  status: number
  milliseconds: number
  bytes: number
  headers: [name: string, value: string][]
  /** JSON is set in lines. */
  text: string
  isWhole: boolean
}

/**
 * Sends an operation of the API document into this server's own listener, as agent `ui-admin` with the server's key, which
 * the browser never sees. Only operations of the document can be named; a deletion wants `confirm`.
 * @throws invalid_input 400, not_found 404 (operation); what the API refuses is an answer.
 */
export async function sendOperation(
  { settings }: Console,
  reference: Reference,
  request: FastifyRequest,
): Promise<Answered> {
  const { form } = request
  const name = form.require('operation')
  const operation = reference.tags.flatMap(({ operations }) => operations).find(({ id }) => id === name)
  if (!operation) throw notFound('operation', name)
  if (operation.method === 'delete' && !form.flag('confirm')) {
    throw invalidInput('tick the box to say that this may be deleted: nothing was sent', 'confirm')
  }
  const sent = requestOf(operation, form)
  const begin = performance.now()
  const response = await request.server.inject({
    method: operation.method,
    url: sent.path,
    headers: {
      ...sent.headers,
      ...(settings.apiKey !== undefined && { authorization: `Bearer ${settings.apiKey}` }),
      'user-agent': request.headers['user-agent'] ?? 'console',
    },
    ...(sent.body !== undefined && { payload: sent.body }),
    remoteAddress: request.ip,
  })
  const milliseconds = performance.now() - begin
  const text = prettyJson(response.body)
  return {
    operation,
    sent,
    curl: curlOf(sent, `${request.protocol}://${request.host}`, settings.apiKey !== undefined),
    status: response.statusCode,
    milliseconds,
    bytes: Buffer.byteLength(response.body),
    headers: Object.entries(response.headers).map(([key, value]) => [key, String(value)]),
    text: text.slice(0, SHOWN),
    isWhole: text.length <= SHOWN,
  }
}

/** The values of the form at their places. The workspace is named twice, for servers with several tenants. */
function requestOf(operation: Operation, form: Form): Sent {
  const valueOf = ({ in: place, name }: Parameter): string | undefined => form.text(`${place}.${name}`)
  const given = operation.parameters.flatMap((parameter) => {
    const value = parameter.name === 'Mem-Agent-Id' ? CONSOLE_AGENT : valueOf(parameter)
    return value === undefined ? [] : [{ ...parameter, value }]
  })
  const at = (place: Parameter['in']) => given.filter((parameter) => parameter.in === place)
  const path = operation.path.replace(/\{(\w+)\}/g, (_found, name: string) => {
    const value = at('path').find((parameter) => parameter.name === name)?.value
    if (value === undefined) throw invalidInput(`${name} is required`, name)
    if (value === '.' || value === '..') throw invalidInput(`${name} must not be ${value}`, name)
    return encodeURIComponent(value)
  })
  const query = new URLSearchParams(at('query').map(({ name, value }): [string, string] => [name, value])).toString()
  const headers = at('header').map(({ name, value }): [string, string] => {
    if (/[^\x20-\x7e]/.test(value)) throw invalidInput(`${name} must be printable ASCII`, name)
    return [name, value]
  })
  const body = operation.body && form.lines('body')
  const workspace = form.text('path.ws')
  return {
    method: operation.method.toUpperCase(),
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...Object.fromEntries(headers),
      ...(workspace !== undefined && { 'X-Mem-Workspace': encodeURIComponent(workspace) }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    body,
  }
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** The same request for a shell. */
function curlOf({ method, path, headers, body }: Sent, origin: string, needsKey: boolean): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`
  const parts = [
    `curl -X ${method} ${quoted(origin + path)}`,
    ...(needsKey ? ['-H "Authorization: Bearer $MEM_API_KEY"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${quoted(body)}`]),
  ]
  return parts.join(' \\\n  ')
}
