import type { IncomingMessage, ServerResponse } from 'node:http'
import { requestIdOf } from '../../http/request-id.ts'
import type { Socket } from 'node:net'
import { GatewayError } from '../errors.ts'
import { UpstreamFault } from '../exchange/exchange.ts'
import type { GatewayCaller } from '../state/organization-state.ts'
import { Access } from './access.ts'
import { Client } from './client.ts'
import { countTokens } from './count-tokens.ts'
import { internalError, shuttingDown } from './faults.ts'
import { mostBytes, select, serveInference } from './inference.ts'
import { modelList, oneModel } from './models.ts'
import type { PlaneParts } from './parts.ts'
import { isDirect, isUnderPlane, placeOf, speaksAnthropic, type Place } from './paths.ts'
import { readBody } from './read-body.ts'
import { Roster } from './roster.ts'
import { refusalBody, refuse, type Family } from './refusal.ts'
import { Turn } from './turn.ts'
import { Visit } from './visit.ts'
import { Watch } from './watch.ts'

/** How long calls that run may go on when the process stops. */
const GRACE_MS = 15_000
/** And how long what was stopped may take to tell its clients. */
const LAST_MS = 1000
const NEVER = new AbortController().signal

/** The data plane: inference routes, served by node:http itself, ahead of the framework. */
export interface Plane {
  /** Whether the path of a request is one of its own. */
  handles(url: string): boolean
  handle(request: IncomingMessage, response: ServerResponse): void
  /** How long a call may take to arrive (ms). */
  readonly arrivalMs: number
  /** What is said of a request below its paths that cannot be read. */
  unreadable(message: string, path: string, requestId: string): string
  /** New calls are refused; those that run get 15 s, then an error. */
  close(): Promise<void>
  activeRequests(organizationId: number): number
}

/** Contract: gateway.md 3-6. */
export const createPlane = (parts: PlaneParts): Plane => new RawPlane(parts)

class RawPlane implements Plane {
  readonly #parts: PlaneParts
  readonly #access: Access
  readonly #watch: Watch
  readonly #turn: Turn
  readonly #visits = new Roster<Visit>()
  readonly #active = new Map<number, number>()
  #isClosing = false
  /** Tells whoever closes that the last call has ended. */
  #tellIdle: (() => void) | undefined

  constructor(parts: PlaneParts) {
    this.#parts = parts
    this.#access = new Access(parts)
    this.#watch = new Watch(parts.monotonic)
    this.#turn = new Turn(parts.log, () => this.#visits.size <= 1)
  }

  handles(url: string): boolean {
    return isUnderPlane(url)
  }

  get arrivalMs(): number {
    return this.#parts.settings.timeouts.total
  }

  unreadable(message: string, path: string, requestId: string): string {
    const isAnthropic = speaksAnthropic(placeOf(path), path, false)
    return refusalBody(new GatewayError('invalid_value', message), { isAnthropic, requestId }).toString()
  }

  activeRequests(organizationId: number): number {
    return this.#active.get(organizationId) ?? 0
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { monotonic, settings, ids, logRequest } = this.#parts
    const startedAt = monotonic()
    const { method = '', url = '/', headers } = request
    const place = placeOf(url)
    const requestId = requestIdOf(headers, ids)
    const shared = { watch: this.#watch, turn: this.#turn, idleMs: settings.timeouts.idle }
    const client = new Client(request, response, requestId, shared)
    const isAnthropic = speaksAnthropic(place, url, headers['anthropic-version'] !== undefined)
    const family = { isAnthropic, requestId }
    response.on('close', () => {
      client.closed()
      const status = response.headersSent ? response.statusCode : 499
      const duration = Math.round((monotonic() - startedAt) * 1000) / 1000
      const isPlain = headers['x-request-id'] !== requestId && isDirect(url)
      const path = isPlain ? url : (url.split('?', 1)[0] ?? '')
      logRequest({ method, path, status, duration_ms: duration, request_id: requestId }, isPlain)
    })
    if (!response.socket) closeWith(request.socket, response)
    const serve = (caller: GatewayCaller): void =>
      this.#serve(
        place,
        request,
        family,
        new Visit(this.#parts, { caller, place, headers, client, startedAt, turn: this.#turn }),
      )
    try {
      if (this.#isClosing) throw shuttingDown()
      const caller = this.#access.find(request)
      if (!(caller instanceof Promise)) serve(caller)
      else caller.then(serve).catch((error: unknown) => this.#refuse(client, error, family))
    } catch (error) {
      this.#refuse(client, error, family)
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#turn.close()
    if (this.#visits.size === 0) return
    const given = new AbortController()
    const idle = new Promise<void>((resolve) => (this.#tellIdle = resolve))
    await Promise.race([idle, this.#parts.wait(GRACE_MS, given.signal)])
    given.abort()
    const fault = new UpstreamFault('closed', shuttingDown())
    // Who still sends its request, or waits for the call of another, has nothing that could be told it.
    this.#visits.each(({ call, client }) => (call ? call.stop(fault) : client.cut()))
    if (this.#visits.size > 0) await Promise.race([idle, this.#parts.wait(LAST_MS, NEVER)])
  }

  /** @throws GatewayError what is wrong with path or method, or with the request for something that leaves no record */
  #serve(place: Place, message: IncomingMessage, family: Family, visit: Visit): void {
    // It may have begun to end while it was found out who calls.
    if (this.#isClosing) throw shuttingDown()
    if (place.kind === 'unknown') throw unknownUrl(place.path)
    const needed = place.kind === 'inference' || place.kind === 'count_tokens' ? 'POST' : 'GET'
    if (message.method !== needed) throw new MethodError(message.method ?? '', needed)
    const { caller, client } = visit
    switch (place.kind) {
      case 'inference':
        return this.#infer(visit, message, family)
      case 'count_tokens':
        return this.#count(visit, message, family)
      case 'models':
        return sendJson(client, modelList(this.#parts.router.models(caller), family.isAnthropic, queryOf(message)))
      case 'model':
        return sendJson(client, oneModel(this.#parts.router.models(caller), place.id, family.isAnthropic))
    }
  }

  #infer(visit: Visit, message: IncomingMessage, family: Family): void {
    const { id } = visit.caller.state
    const isOverloaded = this.#visits.size >= this.#parts.settings.maxActiveRequests
    this.#visits.add(visit)
    this.#active.set(id, this.activeRequests(id) + 1)
    serveInference(this.#parts, this.#watch, visit, { message, family, isOverloaded }, () => {
      this.#visits.delete(visit)
      const left = this.activeRequests(id) - 1
      if (left > 0) this.#active.set(id, left)
      else this.#active.delete(id)
      if (this.#visits.size === 0) this.#tellIdle?.()
    })
  }

  /** No inference, and no record. */
  #count(visit: Visit, message: IncomingMessage, family: Family): void {
    const { client, headers, turn } = visit
    const count = async (body: Buffer): Promise<void> => {
      const { request, selection } = select(this.#parts, visit, body, true)
      const order = { request, candidates: selection.available(), headers, sink: client, watch: this.#watch, turn }
      const counted = await countTokens(this.#parts, order)
      sendBody(client, counted.body, counted.isEstimated ? ['x-mem-estimated', 'true'] : [])
    }
    readBody(message, mostBytes(this.#parts, visit), (body) => {
      if (body instanceof Error) this.#refuse(client, body, family)
      else count(body).catch((error: unknown) => this.#refuse(client, error, family))
    })
  }

  /** Of whom nobody knows, or of what leaves no record. */
  #refuse(client: Client, error: unknown, family: Family): void {
    if (client.isGone) return
    const { log, observer } = this.#parts
    const known = error instanceof GatewayError ? error : undefined
    if (!known) log.error({ err: error, request_id: family.requestId }, 'a request failed')
    const told = known ?? internalError()
    observer.rejected(told.code)
    if (client.hasHead) return client.end()
    const more = told instanceof MethodError ? ['allow', told.allowed] : []
    refuse(client, told, family, more)
  }
}

const queryOf = ({ url = '' }: IncomingMessage): URLSearchParams => new URLSearchParams(url.split('?', 2)[1])

/** An answer that waits for another one on its connection is not told by Node that the connection has closed. */
function closeWith(socket: Socket, response: ServerResponse): void {
  const close = (): void => void (response.socket ?? response.emit('close'))
  socket.setMaxListeners(0).once('close', close) // as many as a client sends at once
  response.once('close', () => socket.off('close', close))
}

/** Clients differ in whether their base URL ends with the version. */
function unknownUrl(path: string): GatewayError {
  const hint = path.includes('/v1/v1/') ? ': the base URL of this client ends before /v1' : ''
  return new GatewayError('unknown_url', `there is no ${path} here${hint}`)
}

class MethodError extends GatewayError {
  readonly allowed: string

  constructor(method: string, allowed: string) {
    super('method_not_allowed', `${method} is not a method of this path: use ${allowed}`)
    this.allowed = allowed
  }
}

const sendJson = (client: Client, value: object): void => sendBody(client, Buffer.from(JSON.stringify(value)))

function sendBody(client: Client, body: Buffer, more: readonly string[] = []): void {
  client.head(200, ['content-type', 'application/json', 'content-length', `${body.length}`, ...more])
  client.end(body)
}
