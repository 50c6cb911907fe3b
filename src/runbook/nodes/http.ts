import { basename } from 'node:path'
import { NodeError } from '../errors.ts'
import { encodeJson, fromJson, parseJson } from '../hcl/json.ts'
import { isMap, itemsOf, toText, type Value, type ValueMap } from '../hcl/values.ts'
import type { HttpResponse } from '../outbound/request.ts'
import type { NodeContext, NodeExecutor } from '../registry.ts'
import { asText, items, map, optionalText, text } from './settings.ts'
import { decodeBody, plainHeaders, statusError } from './answers.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const EXPECTED = String.raw`^([1-5]\d\d|[1-5]xx|\*)$`
const RESPONSE_TYPES = ['auto', 'json', 'text', 'base64'] as const

/** An HTTP request. Contract: runbook.md 6.4. */
export const httpNode: NodeExecutor = {
  type: 'http',
  effects: 'external',
  timeoutMs: 30_000,
  inputSchema: {
    type: 'object',
    properties: {
      url: { type: 'string', minLength: 1, format: 'url' },
      query: { type: 'object', description: 'Lists repeat the key' },
      method: { type: 'string', enum: METHODS, default: 'GET' },
      headers: { type: 'object', description: 'Numbers and bools become text, null leaves out' },
      body: { description: 'Text as it is, anything else as JSON' },
      auth: {
        oneOf: [
          { type: 'object', properties: { bearer: { type: 'string' } }, required: ['bearer'] },
          {
            type: 'object',
            properties: { username: { type: 'string' }, password: { type: 'string' } },
            required: ['username', 'password'],
          },
        ],
        sensitive: true,
      },
      file: { type: ['string', 'array'], items: { type: 'string' }, description: 'Paths to upload as multipart form' },
      fileField: { type: 'string', default: 'file' },
      expectStatus: {
        type: 'array',
        items: {
          type: ['integer', 'string'],
          minimum: 100,
          maximum: 599,
          pattern: EXPECTED,
          description: '404, "2xx" or "*"',
        },
        default: ['2xx', '3xx'],
        description: 'Numbers, classes such as "2xx", or "*"',
      },
      responseType: { type: 'string', enum: RESPONSE_TYPES, default: 'auto', evaluation: 'constant' },
      maxRedirects: { type: 'integer', minimum: 0, maximum: 10, default: 5 },
      maxResponseBytes: { type: 'integer', minimum: 1, maximum: 256 * 1024 * 1024, default: 10 * 1024 * 1024 },
    },
    required: ['url'],
  },
  execute: async (context) => {
    const { config } = context
    const response = await context.http(urlWithQuery(text(config, 'url'), map(config, 'query')), {
      method: text(config, 'method'),
      ...(await content(context)),
      maxRedirects: Number(config.maxRedirects),
      maxResponseBytes: Number(config.maxResponseBytes),
    })
    if (!isExpected(response.status, items(config, 'expectStatus'))) throw statusError(response)
    const type = RESPONSE_TYPES.find((name) => name === config.responseType)
    return { output: fromJson(shown(response, decodeBody(response, type))) }
  },
}

const shown = (response: HttpResponse, body: Value): object => {
  const { status, statusText, url, redirects } = response
  return { statusCode: status, status: statusText, headers: plainHeaders(response), body, url, redirects }
}

function urlWithQuery(address: string, query: ValueMap): string {
  if (!URL.canParse(address)) return address
  const url = new URL(address)
  for (const [key, value] of Object.entries(query)) {
    for (const item of itemsOf(value) ?? [value]) if (item !== null) url.searchParams.append(key, asText(item))
  }
  return url.href
}

/** Headers and body. */
async function content(context: NodeContext): Promise<{ headers: Record<string, string>; body?: string | Buffer }> {
  const { config } = context
  const { body = null, file } = config
  const headers = { ...authorization(map(config, 'auth')), ...headerTexts(map(config, 'headers')) }
  if (body === null && file === undefined) return { headers }
  if (config.method === 'GET' || config.method === 'HEAD') {
    throw new NodeError('config_invalid', `a ${config.method} request has no body`)
  }
  const { type, data } = file === undefined ? encodeBody(body) : await multipart(context, body)
  return { headers: { 'content-type': type, ...headers }, body: data }
}

/** Names in lower case, so that what is given wins over what is derived. */
export function headerTexts(headers: ValueMap): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (value === null) return []
      const plain = toText(value)
      if (plain === undefined) throw new NodeError('config_invalid', `the header ${name} must be text`)
      return [[name.toLowerCase(), plain]]
    }),
  )
}

function authorization(auth: ValueMap): Record<string, string> {
  const bearer = optionalText(auth, 'bearer')
  if (bearer !== undefined) return { authorization: `Bearer ${bearer}` }
  const username = optionalText(auth, 'username')
  if (username === undefined) return {}
  const pair = Buffer.from(`${username}:${text(auth, 'password')}`)
  return { authorization: `Basic ${pair.toString('base64')}` }
}

function encodeBody(body: Value): { type: string; data: string } {
  if (typeof body !== 'string') return { type: 'application/json', data: encodeJson(body) }
  return { type: isJson(body) ? 'application/json' : 'text/plain;charset=UTF-8', data: body }
}

function isJson(body: string): boolean {
  try {
    parseJson(body)
    return true
  } catch {
    return false
  }
}

/** Files below the allowed directories, and the entries of a map as form fields. */
async function multipart(context: NodeContext, body: Value): Promise<{ type: string; data: Buffer }> {
  if (body !== null && !isMap(body)) throw new NodeError('config_invalid', 'beside "file", the body must be a map')
  const form = new FormData()
  for (const [name, value] of Object.entries(body ?? ({} satisfies ValueMap))) form.append(name, asText(value))
  const { file = null } = context.config
  for (const path of itemsOf(file) ?? [file]) {
    const name = asText(path)
    form.append(text(context.config, 'fileField'), new Blob([new Uint8Array(context.readFile(name))]), basename(name))
  }
  // the platform writes the form and chooses its boundary
  const written = new Response(form)
  return { type: written.headers.get('content-type') ?? '', data: Buffer.from(await written.arrayBuffer()) }
}

function isExpected(status: number, expected: readonly Value[]): boolean {
  return expected.some(
    (item) => item === '*' || toText(item) === String(status) || item === `${Math.floor(status / 100)}xx`,
  )
}
