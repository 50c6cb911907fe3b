import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { sha256 } from '../../../src/base/hash.ts'
import { createIdSource } from '../../../src/base/ids.ts'
import { createCache } from '../../../src/gateway/cache/cache.ts'
import { loadModelTable } from '../../../src/gateway/cost/load.ts'
import { createExchanges } from '../../../src/gateway/exchange/make-exchange.ts'
import { createUpstreams } from '../../../src/gateway/kinds/index.ts'
import { createNetwork } from '../../../src/gateway/kinds/network.ts'
import type { Budgets, Content } from '../../../src/gateway/metering/metering.ts'
import type { Alias, Settings, UsageRecord } from '../../../src/gateway/model.ts'
import { redactor } from '../../../src/gateway/observe/redact.ts'
import { createPlane, type Plane } from '../../../src/gateway/plane/index.ts'
import type { FinishedCall, PlaneParts, PlaneSettings } from '../../../src/gateway/plane/parts.ts'
import { CallerLimits } from '../../../src/gateway/routing/limits.ts'
import { Router } from '../../../src/gateway/routing/router.ts'
import type { OpenCredential, OpenKey, OrganizationState } from '../../../src/gateway/state/organization-state.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { credential as anyCredential, key as anyKey, organization } from '../routing/support.ts'

export const PREFIX = '/rest/v1/llm-gateway'
export const TOKEN = `mvk_${'a'.repeat(43)}`
export const SESSION = `mst_${'s'.repeat(43)}`
export const USER = 7

export const CHAT = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] }
export const MESSAGE = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }

export const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'm-2026',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 },
})

const chunk = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm-2026', ...fields })}\n\n`

export const FRAMES = {
  start: chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] }),
  text: (content: string) => chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
  stop: chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  usage: chunk({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 } }),
  done: 'data: [DONE]\n\n',
  error: `data: ${JSON.stringify({ error: { message: 'the engine fell over', type: 'server_error', code: null } })}\n\n`,
}

export const STREAM = [
  FRAMES.start,
  FRAMES.text('Hello'),
  FRAMES.text(' there'),
  FRAMES.stop,
  FRAMES.usage,
  FRAMES.done,
]

export interface SeenRequest {
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** Resolves when the connection, or the answer on it, is over. */
  readonly closed: Promise<unknown>
}

export type Script = (response: ServerResponse, request: SeenRequest) => void | Promise<void>

export interface FakeUpstream {
  readonly port: number
  readonly seen: SeenRequest[]
  /** The next request that comes, or has come unseen. */
  next(): Promise<SeenRequest>
  script: Script
}

export const json =
  (status = 200, body = ANSWER, headers: Record<string, string> = {}): Script =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)

export const refusal = (
  status: number,
  message = 'no',
  fields: object = {},
  headers: Record<string, string> = {},
): Script =>
  json(status, JSON.stringify({ error: { message, type: 'some_error', param: null, code: null, ...fields } }), headers)

export const sse =
  (frames: readonly string[] = STREAM, ends = true): Script =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const frame of frames) response.write(frame)
    if (ends) response.end()
  }

/** A provider on loopback that does as its script says. */
export async function startUpstream(script: Script = json()): Promise<FakeUpstream> {
  const sockets = new Set<Socket>()
  const waiting: ((request: SeenRequest) => void)[] = []
  const unseen: SeenRequest[] = []
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const closed = once(response, 'close')
      const seen = { url: request.url ?? '', headers: request.headers, body: body.toString(), closed }
      fake.seen.push(seen)
      const tell = waiting.shift()
      if (tell) tell(seen)
      else unseen.push(seen)
      return fake.script(response, seen)
    })
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const fake: FakeUpstream = {
    port: portOf(server),
    seen: [],
    next: () => {
      const [first] = unseen.splice(0, 1)
      return first ? Promise.resolve(first) : new Promise((resolve) => waiting.push(resolve))
    },
    script,
  }
  return fake
}

const portOf = (server: { address(): AddressInfo | string | null }): number => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen')
  return address.port
}

export interface RigOptions {
  readonly credentials?: readonly OpenCredential[]
  readonly aliases?: Alias[]
  readonly organization?: Partial<Settings>
  readonly key?: Partial<OpenKey>
  readonly settings?: Partial<PlaneSettings>
  readonly parts?: Partial<PlaneParts>
  readonly prices?: object[]
  /** Where a service account gets its tokens. */
  readonly tokenAddress?: string
}

export interface Rig {
  readonly port: number
  readonly plane: Plane
  readonly records: UsageRecord[]
  readonly contents: (Content | undefined)[]
  readonly finished: FinishedCall[]
  /** What back-off waited, ms. */
  readonly waits: number[]
  readonly logged: { fields: object; message: string }[]
  readonly state: OrganizationState
  /** Of its clock. */
  now(): number
  /** Moves clock and time limits on. */
  advance(ms: number): void
  /** The next usage record, or one that came unseen. */
  record(): Promise<UsageRecord>
  call(path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  /** Sends, and hands the answer over as it comes. */
  open(path: string, body?: unknown, options?: CallOptions): Promise<IncomingMessage>
}

export interface CallOptions {
  readonly method?: string
  /** null: without a token. */
  readonly token?: string | null
  readonly headers?: Record<string, string | string[]>
  /** Sent as it is. */
  readonly raw?: string | Buffer
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  readonly body: any
}

/** A credential for a provider on loopback. */
export const credentialAt = (
  id: number,
  { port }: { port: number },
  fields: Partial<OpenCredential> = {},
): OpenCredential =>
  anyCredential(id, {
    kind: 'openai-compatible',
    baseUrl: `http://127.0.0.1:${port}/v1`,
    config: { auth: 'bearer', stream_usage: true, responses: true, drop: [] },
    secrets: { api_key: `provider key ${id}` },
    ...fields,
  })

const SETTINGS: PlaneSettings = {
  maxRequestBytes: 32 * 1024 * 1024,
  maxResponseBytes: 64 * 1024 * 1024,
  timeouts: { connect: 5000, first_byte: 60_000, idle: 60_000, total: 600_000 },
  commitAfterMs: 10_000,
  maxAttempts: 3,
  maxRetryAfterMs: 10_000,
  maxActiveRequests: 2000,
  allowedOrigins: [],
}

const FREE_BUDGETS: Budgets = { reserve: () => ({ settle: () => undefined, release: () => undefined }) }

/** The plane over real routing, exchanges and connections, and a meter that keeps what it is given. */
export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const clock = adjustableClock()
  let ahead = 0
  const advance = (ms: number): void => {
    clock.advance(ms)
    ahead += ms
  }
  const network = createNetwork({ allowedHosts: ['127.0.0.1'], ca: undefined, connectMs: 5000 })
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const key = anyKey(1, { hashes: [{ hash: sha256(TOKEN) }], ...options.key })
  const state: OrganizationState = {
    ...organization({
      credentials: [...(options.credentials ?? [])],
      aliases: options.aliases ?? [],
      ...(options.organization && { settings: options.organization }),
    }),
    keys: [key],
    users: new Map([[USER, { role: 'member' }]]),
  }
  const table = loadModelTable({ prices: options.prices ?? [] })
  const router = new Router({
    clock,
    models: table,
    makeUpstream: createUpstreams({
      clock,
      random: () => 0.5,
      log,
      network,
      runtimeRoles: [],
      environment: {},
      ...(options.tokenAddress !== undefined && { tokenAddress: options.tokenAddress }),
    }),
    seed: 1,
    retryBudget: 0.2,
    queueLength: 100,
    queueWaitMs: 2000,
    processes: () => 1,
    onRejected: () => undefined,
  })
  router.update(state)
  const records: UsageRecord[] = []
  const unseen: UsageRecord[] = []
  const waiting: ((record: UsageRecord) => void)[] = []
  const contents: (Content | undefined)[] = []
  const finished: FinishedCall[] = []
  const waits: number[] = []
  const logged: { fields: object; message: string }[] = []
  const plane = createPlane({
    clock,
    monotonic: () => performance.now() + ahead,
    random: () => 0.5,
    ids: createIdSource(clock),
    wait: async (ms) => {
      waits.push(ms)
      advance(Math.ceil(ms))
    },
    log: { error: (fields, message) => logged.push({ fields, message }) },
    logRequest: () => undefined,
    settings: { ...SETTINGS, ...options.settings },
    states: {
      findKey: (hash) => {
        const isGood = key.hashes.some((each) => each.hash === hash) && key.enabled
        return isGood && (key.expiresAt ?? Infinity) > clock.now() ? { state, key } : undefined
      },
      get: (id) => (id === state.id ? state : undefined),
    },
    sessions: {
      ended: 0,
      find: async (token) => (token === SESSION ? { user: { id: USER, organization_id: state.id } } : undefined),
    },
    requireInitialized: async () => undefined,
    router,
    limits: new CallerLimits({ clock, processes: () => 1 }),
    makeExchange: createExchanges({ clock, redactor }),
    table: () => table,
    metering: {
      admit: () => undefined,
      record: (record, content) => {
        records.push(record)
        contents.push(content)
        const tell = waiting.shift()
        if (tell) tell(record)
        else unseen.push(record)
      },
    },
    budgets: FREE_BUDGETS,
    observer: { finished: (call) => void finished.push(call), rejected: () => undefined },
    cache: createCache(1024 * 1024, clock),
    ...options.parts,
  })
  const server = createServer((request, response) => plane.handle(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    network.close()
  })
  const port = portOf(server)
  const open = async (path: string, body?: unknown, asked: CallOptions = {}): Promise<IncomingMessage> => {
    const {
      token = TOKEN,
      headers = {},
      raw,
      method = body === undefined && raw === undefined ? 'GET' : 'POST',
    } = asked
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const request = httpRequest({
      port,
      host: '127.0.0.1',
      method,
      path: path.startsWith('/') ? path : `${PREFIX}/v1/${path}`,
      agent: false,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(sent !== undefined && { 'content-type': 'application/json' }),
        ...(sent !== undefined && !('transfer-encoding' in headers) && { 'content-length': Buffer.byteLength(sent) }),
        ...headers,
      },
      ...(asked.signal && { signal: asked.signal }),
    })
    const answered = once(request, 'response')
    // A body that is refused unread may meet a closed connection after its answer.
    request.on('error', () => undefined)
    request.end(sent)
    const [response] = await answered
    return response
  }
  return {
    port,
    plane,
    records,
    contents,
    finished,
    waits,
    logged,
    state,
    now: () => clock.now(),
    advance,
    record: () => {
      const [first] = unseen.splice(0, 1)
      return first ? Promise.resolve(first) : new Promise((resolve) => waiting.push(resolve))
    },
    open,
    call: async (path, body, asked) => {
      const response = await open(path, body, asked)
      const text = (await buffer(response)).toString()
      const isJson = response.headers['content-type']?.startsWith('application/json') && text !== ''
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        text,
        body: isJson ? JSON.parse(text) : undefined,
      }
    },
  }
}
