import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { deliver } from './delivery.ts'
import { createProvider, type Provider } from './providers/index.ts'
import { Director, type Behaviour, type Script } from './script.ts'
import { jsonReply, Refusal, type Frame, type Json, type ProviderName, type ReceivedCall, type Reply } from './wire.ts'
import type { Usage } from './wire.ts'

export type { Behaviour, Script } from './script.ts'
export { embed, tokensOf } from './speech.ts'
export type { ProviderName, ReceivedCall, Usage } from './wire.ts'

/** What it has told of tokens, in answers whose counts went out. */
export interface Reported extends Usage {
  /** Answers that told their tokens. */
  answers: number
}

export interface FakeModel {
  readonly provider: ProviderName
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly port: number
  /** The fields of a credential for it, as `POST credentials` takes them, but for the name. */
  readonly credential: Json
  readonly received: readonly ReceivedCall[]
  readonly reported: Readonly<Reported>
  /** Of tokens against signed assertions (vertex) and of roles (cloud-roles). */
  readonly exchanges: number
  /** Follows another script from the next call on. */
  setScript(script: Script): void
  /** The first call, from the start on, that fits; waits until it comes. */
  waitFor(predicate?: (call: ReceivedCall) => boolean): Promise<ReceivedCall>
  /** The first call that the client left before its answer was whole; waits until one is. */
  waitForClosed(predicate?: (call: ReceivedCall) => boolean): Promise<ReceivedCall>
  /** Breaks every connection and ends. */
  close(): Promise<void>
}

export interface FakeOptions {
  provider: ProviderName
  script?: Script
  /** A free one when absent. */
  port?: number
  clock?: { now(): number }
}

const SYSTEM_CLOCK = { now: (): number => Date.now() }

/** Starts a stand-in for a provider that speaks its wire, checks what it is sent, and follows a script. */
export async function startFakeModel(options: FakeOptions): Promise<FakeModel> {
  const { clock = SYSTEM_CLOCK } = options
  const provider = createProvider(options.provider, clock)
  const received: ReceivedCall[] = []
  const reported: Reported = { ...NOTHING, answers: 0 }
  const events = new EventEmitter().setMaxListeners(0)
  let director = new Director(options.script)

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('date', new Date(clock.now()).toUTCString())
    const raw = await buffer(request)
    if (request.url?.startsWith('/__control/')) return control(request.url, raw, response)
    const call = callOf(request, raw, received.length + 1, clock.now())
    response.once('close', () => {
      if (call.isDone || response.writableFinished) return
      call.closedByClientAt = clock.now()
      events.emit('closed')
    })
    received.push(call)
    events.emit('received')
    const { behaviour, reply } = meet(provider, call, () => director.next(call))
    if (reply === 'silence') return
    if (reply === 'reset') return void response.socket?.resetAndDestroy()
    const report = reporter(reported)
    await deliver(response, reply, behaviour, call, report)
  }

  function control(url: string, raw: Buffer, response: ServerResponse): void {
    if (url === '/__control/script') director = new Director(JSON.parse(raw.toString()))
    const shown = received.map(({ raw: bytes, query, ...call }) => ({
      ...call,
      query: [...query],
      bytes: bytes.length,
    }))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ received: shown, reported, exchanges: provider.exchanges?.() ?? 0 }))
  }

  async function waiting(event: string, find: () => ReceivedCall | undefined): Promise<ReceivedCall> {
    for (let found = find(); ; found = find()) {
      if (found) return found
      await once(events, event)
    }
  }

  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500, { 'x-fake-error': 'yes' })
      response.end(`the fake failed: ${error instanceof Error ? error.stack : String(error)}`)
    })
  })
  const port = await listen(server, options.port)
  const url = `http://127.0.0.1:${port}`
  return {
    provider: options.provider,
    url,
    port,
    credential: { provider: options.provider, ...provider.credential(url) },
    received,
    reported,
    get exchanges() {
      return provider.exchanges?.() ?? 0
    },
    setScript: (script) => void (director = new Director(script)),
    waitFor: (predicate = () => true) => waiting('received', () => received.find(predicate)),
    waitForClosed: (predicate = () => true) =>
      waiting('closed', () => received.find((call) => call.closedByClientAt !== undefined && predicate(call))),
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

const NOTHING: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, output: 0, reasoning: 0 }

/** Adds up what answers told; the last word of an answer counts. */
function reporter(reported: Reported): (frame: Frame) => void {
  let before: Usage | undefined
  return ({ usage }) => {
    if (!usage) return
    reported.answers += before ? 0 : 1
    for (const name of ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h', 'output', 'reasoning'] as const) {
      reported[name] += usage[name] - (before?.[name] ?? 0)
    }
    before = usage
  }
}

interface Meeting {
  behaviour: Behaviour
  reply: Reply | 'silence' | 'reset'
}

function meet(provider: Provider, call: ReceivedCall, next: () => Behaviour): Meeting {
  let behaviour: Behaviour = {}
  try {
    const aside = provider.aside(call)
    if (aside) return { behaviour, reply: aside }
    behaviour = next()
    if (behaviour.reset === 'before') return { behaviour, reply: 'reset' }
    if (behaviour.silent === true) return { behaviour, reply: 'silence' }
    return { behaviour, reply: spoilt(answer(provider, call, behaviour), provider, call, behaviour) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { behaviour: onlyDelivery(behaviour), reply: provider.refuse(error, call) }
  }
}

/** A refusal of the fake itself goes out at once and whole. */
const onlyDelivery = ({ firstByteMs }: Behaviour): Behaviour => (firstByteMs === undefined ? {} : { firstByteMs })

function answer(provider: Provider, call: ReceivedCall, behaviour: Behaviour): Reply {
  const { body, redirect, error, errorAfter, status = error === undefined ? 200 : undefined } = behaviour
  if (redirect !== undefined) return jsonReply({}, undefined, status === 200 ? 302 : status, { location: redirect })
  if (body !== undefined) {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return { status: status ?? 400, contentType: 'application/json', frames: [{ bytes: Buffer.from(text) }] }
  }
  if (errorAfter === undefined && (error !== undefined || (status ?? 200) >= 400))
    return provider.refuse(scripted(behaviour, call), call)
  const refused = behaviour.refuseFields?.find((name) => Object.hasOwn(Object(call.body), name))
  if (refused !== undefined) throw new Refusal('invalid', `Unknown parameter: '${refused}'.`, { param: refused })
  return provider.answer(call, behaviour)
}

function scripted({ error, status, message, code, echoKey }: Behaviour, { headers }: ReceivedCall): Refusal {
  const failure = error ?? failureOf(status ?? 500)
  const key = headers['authorization'] ?? headers['x-api-key'] ?? headers['api-key'] ?? headers['x-goog-api-key'] ?? ''
  const said = `${message ?? `scripted: ${failure}`}${echoKey ? `: ${key.replace(/^Bearer /, '')}` : ''}`
  return new Refusal(failure, said, { ...(status !== undefined && { status }), ...(code !== undefined && { code }) })
}

function failureOf(status: number): Refusal['failure'] {
  if (status === 401) return 'auth'
  if (status === 403) return 'permission'
  if (status === 404) return 'missing'
  if (status === 413) return 'too_large'
  if (status === 429) return 'rate'
  if (status === 503 || status === 529) return 'overloaded'
  return status >= 500 ? 'server' : 'invalid'
}

/** What goes wrong inside a 200. */
function spoilt(reply: Reply, provider: Provider, call: ReceivedCall, behaviour: Behaviour): Reply {
  const { errorAfter, malformed, noStop } = behaviour
  if (reply.status !== 200) return reply
  let { frames } = reply
  if (errorAfter !== undefined) {
    const last = frames.flatMap(({ isContent }, i) => (isContent ? [i + 1] : []))[errorAfter - 1] ?? frames.length
    const error = provider.errorFrame(scripted({ error: 'overloaded', ...behaviour }, call), call)
    frames = [...frames.slice(0, errorAfter === 0 ? 0 : last), error]
  }
  if (noStop) frames = frames.slice(0, frames.findLastIndex(({ isContent }) => isContent) + 1)
  if (malformed === undefined) return { ...reply, frames }
  const first = frames.findIndex(({ isContent }) => isContent)
  return {
    ...reply,
    frames: frames.map((frame, i) => (i === first ? { bytes: broken(frame.bytes, malformed) } : frame)),
  }
}

function broken(bytes: Buffer, how: 'json' | 'crc'): Buffer {
  if (how === 'json') return Buffer.from(bytes.toString().replace(/\}(\s*)$/, '$1'))
  const damaged = Buffer.from(bytes)
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 1) ^ 1, damaged.length - 1)
  return damaged
}

function callOf(request: IncomingMessage, raw: Buffer, number: number, at: number): ReceivedCall {
  const { method = '', url = '/', headers, rawHeaders } = request
  const { pathname, searchParams } = new URL(url, 'http://fake')
  return {
    number,
    method,
    url,
    path: pathname,
    query: searchParams,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    rawHeaders,
    raw,
    body: parsed(raw),
    at,
    status: undefined,
    sentFrames: 0,
    sentBytes: 0,
    isDone: false,
    closedByClientAt: undefined,
  }
}

function parsed(raw: Buffer): unknown {
  try {
    return JSON.parse(raw.toString())
  } catch {
    return undefined
  }
}

async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
