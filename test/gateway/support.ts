import { afterAll, beforeAll } from 'vitest'
import { addressOf } from '../../src/app/database.ts'
import type { Clock } from '../../src/base/clock.ts'
import { sha256 } from '../../src/base/hash.ts'
import { createIdSource } from '../../src/base/ids.ts'
import { createLogger } from '../../src/base/log.ts'
import type { Database } from '../../src/database/database.ts'
import { openDatabase } from '../../src/database/open.ts'
import type { TestResult } from '../../src/gateway/kinds/test.ts'
import { GatewayManagement, type ManagementParts } from '../../src/gateway/management.ts'
import type { ExplainRoute } from '../../src/gateway/ports.ts'
import { gatewayRoutes } from '../../src/gateway/routes/index.ts'
import { raiseRevision } from '../../src/gateway/store/revisions.ts'
import { createListener } from '../../src/http/listener.ts'
import { mountRest, platformRoutes } from '../../src/platform/routes/index.ts'
import type { Route } from '../../src/platform/routes/route.ts'
import { Platform } from '../../src/platform/service.ts'
import { adjustableClock } from '../support/memory-api.ts'
import {
  addOrganization,
  CHEAP,
  describeInPlaces,
  expectOk,
  initialize,
  PASSWORD,
  type Place,
  type Reply,
} from '../platform/support.ts'

interface CallOptions {
  /** Sent as bearer; null for none. The admin's when absent. */
  token?: string | null
  headers?: Record<string, string>
}

export type Call = (method: string, path: string, body?: unknown, options?: CallOptions) => Promise<Reply>

/** One process that serves the platform and the management of the gateway, over an initialized place. */
export interface GatewayApi {
  readonly url: string
  readonly place: Place
  readonly platform: Platform
  readonly management: GatewayManagement
  readonly database: Database
  readonly clock: Clock
  /** The token of `ada@example.org`, admin of the first organization. */
  readonly admin: string
  advance(ms: number): void
  /** Calls a path below `/rest/v1/llm-gateway`, or from the root when it starts with `//`. */
  readonly call: Call
  login(email: string, password?: string): Promise<string>
  /** A new user of the first organization, logged in. */
  user(email: string, fields?: Record<string, unknown>): Promise<{ id: number; token: string }>
  stop(): Promise<void>
}

/** What stands in for other rooms, unless a test brings its own. */
export interface GatewayOptions extends Partial<
  Pick<ManagementParts, 'allowedHosts' | 'runtimeRoles' | 'live' | 'spentOf' | 'testCredential'>
> {
  explain?: ExplainRoute
  /** More routes, over what was made. */
  routes?: (made: Pick<GatewayApi, 'place' | 'platform' | 'management' | 'database' | 'clock'>) => Route[]
}

const GOOD: TestResult = { ok: true, mode: 'auth', status: 200, latency_ms: 1 }

export async function startGateway(place: Place, options: GatewayOptions = {}): Promise<GatewayApi> {
  const clock = adjustableClock()
  const config = place.config()
  const log = createLogger('silent', 'json')
  const ids = createIdSource(clock)
  const database = openDatabase(addressOf(config, config.stores.metadata))
  const platform = new Platform({
    database,
    keyFile: config.platform.key_file,
    sessionTtlMs: config.platform.session_ttl,
    links: { exists: async () => false },
    userWatch: { changing: raiseRevision, changed: (organizationId) => management.states.reload(organizationId) },
    clock,
    ids,
    log,
    scrypt: CHEAP,
  })
  const management = new GatewayManagement({
    platform,
    clock,
    log,
    allowedHosts: options.allowedHosts ?? ['127.0.0.1'],
    runtimeRoles: options.runtimeRoles ?? [],
    maxRequestBytes: config.gateway.max_request_bytes,
    live: options.live ?? { healthOf: () => ({ state: 'unknown', models: [] }), recover: () => {} },
    spentOf: options.spentOf ?? (async () => new Map()),
    testCredential: options.testCredential ?? (async () => GOOD),
  })
  await management.start()
  const listener = createListener({ log, ids, timeoutMs: 30_000, allowedOrigins: [] })
  const explain = options.explain ?? ((_, name) => ({ name, candidates: [] }))
  const routes = [
    ...platformRoutes(platform, config.platform.session_ttl),
    ...gatewayRoutes(management, explain),
    ...(options.routes?.({ place, platform, management, database, clock }) ?? []),
  ]
  mountRest(listener, platform, routes, {
    timeoutMs: 30_000,
    allowedOrigins: [],
    baseUrl: undefined,
    isServiceToken: (token) => management.states.findKey(sha256(token)) !== undefined,
  })
  const url = await listener.listen({ host: '127.0.0.1', port: 0 })
  let admin = ''
  const call: Call = async (method, path, body, { token = admin, headers = {} } = {}) => {
    const address = url + (path.startsWith('//') ? path.slice(1) : `/rest/v1/llm-gateway${path}`)
    const response = await fetch(address, {
      method,
      headers: {
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text || undefined }
  }
  const login = async (email: string, password = PASSWORD): Promise<string> =>
    expectOk(await call('POST', '//rest/v1/platform/login', { email, password }, { token: null })).token
  admin = await login('ada@example.org')
  return {
    url,
    place,
    platform,
    management,
    database,
    clock,
    admin,
    advance: clock.advance,
    call,
    login,
    user: async (email, fields = {}) => {
      const body = { email, password: PASSWORD, ...fields }
      const { id } = expectOk(await call('POST', '//rest/v1/platform/users', body), 201)
      return { id, token: await login(email) }
    },
    stop: async () => {
      await listener.close()
      await management.close()
      await database.close()
    },
  }
}

/** Runs the tests against a process over each database; `bo` is admin of a second organization: `bo@example.net`. */
export function describeGateway(
  name: string,
  define: (api: () => GatewayApi) => void,
  options: () => GatewayOptions = () => ({}),
): void {
  describeInPlaces(name, (place) => {
    let api: GatewayApi | undefined
    beforeAll(async () => {
      await initialize(place())
      await addOrganization(place(), 'bo')
      api = await startGateway(place(), options())
    })
    afterAll(() => api?.stop())
    define(() => {
      if (!api) throw new Error('the server is not up yet')
      return api
    })
  })
}
