import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { backOff } from '../../base/back-off.ts'
import { NodeError } from '../errors.ts'
import { parseJson } from '../hcl/json.ts'
import type { ApiResponse, Transport } from './transport.ts'

/** What a node may put out; an answer is not larger. */
const MAX_BYTES = 64 * 1024 * 1024
/** Characters of a line of a stream, the rest of it is dropped. */
const MAX_LINE = 1024 * 1024

/** An answer of the API server other than 2xx; the message is that of its Status object. */
export class KubernetesError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface ApiRequest {
  readonly method?: string
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  /** Of the body, JSON unless given. */
  readonly contentType?: string
  readonly signal: AbortSignal
}

const status = z.looseObject({ message: z.string() })

/** How often the server may say that it is too busy, with the pause that it asks for. */
const BUSY_ATTEMPTS = 4
const MAX_PAUSE_MS = 10_000

/** The REST interface of an API server; each request has a time limit and ends with its signal. */
export class Api {
  private readonly transport: Transport
  private readonly timeoutMs: number

  constructor(transport: Transport, timeoutMs: number) {
    this.transport = transport
    this.timeoutMs = timeoutMs
  }

  /** Of objects that name none. */
  get namespace(): string {
    return this.transport.namespace
  }

  /** @throws KubernetesError, NodeError */
  async json<T>(path: string, shape: z.ZodType<T>, request: ApiRequest): Promise<T> {
    const parsed = shape.safeParse(parseJson(await this.text(path, request)))
    if (parsed.success) return parsed.data
    throw new KubernetesError(502, `an unknown answer to ${path}: ${z.prettifyError(parsed.error)}`)
  }

  /** @throws KubernetesError, NodeError */
  async text(path: string, request: ApiRequest): Promise<string> {
    const limit = AbortSignal.timeout(this.timeoutMs)
    try {
      return await bodyText(await this.send(path, { ...request, signal: AbortSignal.any([request.signal, limit]) }))
    } catch (error) {
      if (!limit.aborted || request.signal.aborted) throw error
      throw new NodeError('network_error', `the API server gave no answer within ${this.timeoutMs} ms`)
    }
  }

  /** The whole lines of a stream until the server ends it. @throws KubernetesError, NodeError */
  async *lines(path: string, request: ApiRequest): AsyncGenerator<string> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of (await this.send(path, request)).body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = (lines.pop() ?? '').slice(0, MAX_LINE)
      yield* lines
    }
  }

  /** An answer that is 2xx. */
  private async send(path: string, { method = 'GET', query = {}, body, contentType, signal }: ApiRequest) {
    const search = new URLSearchParams(
      Object.entries(query).flatMap(([name, value]): [string, string][] =>
        value === undefined ? [] : [[name, String(value)]],
      ),
    ).toString()
    const target = search === '' ? path : `${path}?${search}`
    const content = body === undefined ? {} : { 'content-type': contentType ?? 'application/json' }
    for (let attempt = 1; ; attempt++) {
      const init = { method, headers: content, signal, ...(body !== undefined && { body: JSON.stringify(body) }) }
      const answer = await this.transport.send(target, init)
      if (answer.status >= 200 && answer.status < 300) return answer
      const error = await statusError(answer)
      if (answer.status !== 429 || attempt === BUSY_ATTEMPTS) throw error
      const asked = Number(answer.headers.get('retry-after') ?? 0) * 1000
      const pause = Math.max(Math.min(asked, MAX_PAUSE_MS), backOff(attempt, 500, MAX_PAUSE_MS))
      await wait(pause, undefined, { signal })
    }
  }
}

async function bodyText({ body }: ApiResponse): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > MAX_BYTES)
      throw new NodeError('response_too_large', `the API server answers more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

async function statusError(answer: ApiResponse): Promise<KubernetesError> {
  const text = await bodyText(answer)
  try {
    return new KubernetesError(answer.status, status.parse(JSON.parse(text)).message)
  } catch {
    return new KubernetesError(answer.status, `the API server answers ${answer.status}`)
  }
}

/** Names become parts of a path: one like `..` would name the collection, and delete all of it. */
export function segment(name: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !/[/%\0]/.test(name)) return encodeURIComponent(name)
  throw new NodeError('config_invalid', `${JSON.stringify(name)} cannot be a name in a cluster`)
}
