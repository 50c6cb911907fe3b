import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { errorText } from '../../base/errors.ts'
import { endBefore } from '../../http/deadline.ts'
import { isJson, isTrustedOrigin } from '../../http/origin.ts'
import { bearersOf, sessionsIn } from '../../http/tokens.ts'
import { PlatformError } from '../../platform/errors.ts'
import { GatewayError } from '../errors.ts'
import { Recent } from '../routing/recent.ts'
import type { GatewayCaller } from '../state/organization-state.ts'
import type { PlaneParts, SessionFinder } from './parts.ts'

/** A session is asked for again after so long. */
const SESSION_MS = 1000
/** What the database may take to say whose a session is. */
const LOOK_UP_MS = 5000
const SESSIONS = 10_000
const HASHES = 1000
const BAD_TOKENS = 100
const BAD_TOKENS_MS = 60_000
const ADDRESSES = 10_000

type Session = Awaited<ReturnType<SessionFinder['find']>>

/** A session that was looked up. */
interface Known {
  readonly until: number
  /** How many had ended then. */
  readonly ended: number
  readonly found: Promise<Session>
}

interface Sent {
  readonly token: string
  /** A browser may have added it by itself. */
  readonly fromCookie: boolean
}

/** Who makes an inference call. Contract: gateway.md 3.1. */
export class Access {
  readonly #parts: PlaneParts
  readonly #sessions = new Map<string, Known>()
  /** Of tokens that came of late: the same ones come again and again. */
  readonly #hashes = new Recent<string, string>(HASHES)
  /** By address: tokens that were no good, in the minute that began then. */
  readonly #bad = new Map<string, { count: number; readonly since: number }>()
  /** Whether the database did not say the last time whose a session is. */
  #isAway = false

  constructor(parts: PlaneParts) {
    this.#parts = parts
  }

  /**
   * At once for a virtual key; a session is looked up, and then known for a second.
   * @throws GatewayError 401 `invalid_api_key`, 403 `origin_refused`, 429 `rate_limit_exceeded`, 503 `not_initialized`, or
   * `metering_unavailable` while the database does not say whose a session is
   */
  find(request: IncomingMessage): GatewayCaller | Promise<GatewayCaller> {
    const sent = tokenOf(request)
    if (!sent) return this.#nobody()
    const { token, fromCookie } = sent
    const known = this.#parts.states.findKey(this.#hashOf(token))
    if (!known) return this.#session(token, fromCookie, request)
    const { state, key } = known
    if (key.userId !== undefined && !state.users.has(key.userId)) throw this.#refusal(request)
    return { state, userId: key.userId, key }
  }

  #hashOf(token: string): string {
    const known = this.#hashes.get(token)
    if (known !== undefined) return known
    const made = hash('sha256', token, 'hex')
    this.#hashes.set(token, made)
    return made
  }

  /** Where there is no organization, nobody has a token. */
  async #nobody(): Promise<never> {
    await this.#asked(this.#parts.requireInitialized())
    throw invalidKey()
  }

  async #session(token: string, fromCookie: boolean, request: IncomingMessage): Promise<GatewayCaller> {
    const session = await this.#lookUp(token, request)
    const state = session && this.#parts.states.get(session.user.organization_id)
    if (!session || !state?.users.has(session.user.id)) {
      await this.#asked(this.#parts.requireInitialized())
      throw this.#refusal(request)
    }
    if (fromCookie) refuseForeign(request, this.#parts.settings.allowedOrigins)
    return { state, userId: session.user.id, key: undefined }
  }

  #lookUp(token: string, request: IncomingMessage): Promise<Session> {
    const now = this.#parts.monotonic()
    const known = this.#sessions.get(token)
    const { ended } = this.#parts.sessions
    if (known && known.until > now && known.ended === ended) return known.found
    const waitMs = this.#blockedMs(request)
    if (waitMs > 0) {
      const message = 'too many bad tokens came from this address; wait before the next'
      throw new GatewayError('rate_limit_exceeded', message, { retryAfterMs: waitMs })
    }
    const found = this.#asked(this.#parts.sessions.find(token))
    found.then(
      (session) => session ?? this.#sessions.delete(token),
      () => this.#sessions.delete(token),
    )
    makeRoom(this.#sessions, SESSIONS)
    this.#sessions.set(token, { until: now + SESSION_MS, ended, found })
    return found
  }

  /**
   * What the database says; that it says nothing is logged once, however many ask.
   * @throws GatewayError 503 when there is no organization, or no answer in time
   */
  async #asked<T>(answer: Promise<T>): Promise<T> {
    try {
      const said = await endBefore(AbortSignal.timeout(LOOK_UP_MS), answer, late)
      this.#isAway = false
      return said
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'not_initialized') {
        throw new GatewayError(error.code, error.message)
      }
      if (!this.#isAway) this.#parts.log.error({ reason: errorText(error) }, 'sessions cannot be looked up')
      this.#isAway = true
      throw unavailable()
    }
  }

  /** How long an address must wait; 0 = it need not. */
  #blockedMs({ socket: { remoteAddress = '' } }: IncomingMessage): number {
    const bad = this.#bad.get(remoteAddress)
    return bad && bad.count >= BAD_TOKENS ? bad.since + BAD_TOKENS_MS - this.#parts.clock.now() : 0
  }

  /** Counts a token that is no good. */
  #refusal({ socket: { remoteAddress = '' } }: IncomingMessage): GatewayError {
    const now = this.#parts.clock.now()
    const bad = this.#bad.get(remoteAddress)
    if (bad && bad.since + BAD_TOKENS_MS > now) bad.count++
    else {
      this.#bad.delete(remoteAddress)
      makeRoom(this.#bad, ADDRESSES)
      this.#bad.set(remoteAddress, { count: 1, since: now })
    }
    return invalidKey()
  }
}

/** Whatever is wrong with a token, this is all that is told. */
const invalidKey = (): GatewayError =>
  new GatewayError('invalid_api_key', 'a valid session token or virtual key is required')

const late = (): Error => new Error(`the database gave no answer within ${LOOK_UP_MS / 1000} s`)

const unavailable = (): GatewayError =>
  new GatewayError('metering_unavailable', 'sessions cannot be looked up now, virtual keys can: try again soon')

/** Undefined when there is none, or two that differ. */
function tokenOf(request: IncomingMessage): Sent | undefined {
  const { headers } = request
  const own = headers['x-mem-api-key']
  if (own !== undefined) return { token: String(own), fromCookie: false }
  const { cookie, 'x-api-key': apiKey, 'api-key': azure } = headers
  const bearers = bearersOf(request)
  const [bearer] = bearers
  if (bearers.length === 1 && bearer !== undefined && (apiKey ?? azure ?? cookie) === undefined) {
    return { token: bearer, fromCookie: false }
  }
  const sent = [...bearers, apiKey, azure].flatMap((token) => (token === undefined ? [] : String(token)))
  const [token, ...others] = new Set([...sent, ...sessionsIn(cookie)])
  if (token === undefined || others.length > 0) return undefined
  return { token, fromCookie: sent.length === 0 }
}

/** A page of another site must not act with the session that the browser adds by itself. @throws GatewayError 403 */
function refuseForeign({ method, headers }: IncomingMessage, allowed: readonly string[]): void {
  if (method === 'GET' || method === 'HEAD') return
  const { origin, host = '', 'content-type': type } = headers
  if (!isJson(type)) {
    throw new GatewayError('origin_refused', 'with a session cookie, the body must be application/json')
  }
  if (origin === undefined || isTrustedOrigin(origin, host, allowed)) return
  const message = `the origin ${origin} is neither this server's nor in server.allowed_origins`
  throw new GatewayError('origin_refused', message)
}

/** Forgets the oldest entry of a map that is full. */
function makeRoom(map: Map<string, unknown>, size: number): void {
  if (map.size < size) return
  for (const oldest of map.keys()) {
    map.delete(oldest)
    return
  }
}
