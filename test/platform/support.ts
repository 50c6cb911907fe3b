import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest'
import { createApp } from '../../src/app.ts'
import { addressOf } from '../../src/app/database.ts'
import { withPlatform } from '../../src/app/platform.ts'
import { loadConfig, type Config } from '../../src/config/load.ts'
import type { Database } from '../../src/database/database.ts'
import { openDatabase } from '../../src/database/open.ts'
import type { ScryptParameters } from '../../src/platform/passwords.ts'
import { adjustableClock } from '../support/memory-api.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'

export type Dialect = 'sqlite' | 'postgres'

export const PASSWORD = 'correct horse battery'
/** Enough to be real, and a thousandth of the standard's time. */
export const CHEAP: ScryptParameters = { ln: 5, r: 8, p: 1 }

export interface Reply {
  status: number
  headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  body: any
}

interface CallOptions {
  /** Sent as bearer; null for none. The admin's when absent. */
  token?: string | null
  headers?: Record<string, string>
  /** Sent as it is, instead of JSON. */
  raw?: string | Uint8Array
}

/** A data directory, a database and the configuration over both. */
export interface Place {
  dialect: Dialect
  directory: string
  /** For the program's processes. */
  env: Record<string, string>
  config(env?: Record<string, string>, file?: string): Config
  open(): Database
  remove(): Promise<void>
}

/** A server with an organization and its admin. */
export interface PlatformApi {
  readonly url: string
  readonly place: Place
  /** The admin's token. */
  readonly admin: string
  /** Lets time pass. */
  advance(ms: number): void
  /** Calls a path below `/rest/v1/platform`, or from the root when it starts with `//`. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Reply>
  /** The token of a new session. */
  login(email: string, password?: string): Promise<string>
  /** A new user of the organization, logged in. */
  user(email: string, fields?: Record<string, unknown>): Promise<{ id: number; token: string }>
  /** The id of a new project. */
  project(name: string): Promise<number>
  stop(): Promise<void>
}

export async function createPlace(dialect: Dialect): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-platform-'))
  const postgres = dialect === 'postgres' ? await createPostgresDatabase() : undefined
  const seams = ['METADATA', 'VECTOR', 'GRAPH', 'LEDGER'].map((seam) => [`MEM_${seam}_DRIVER`, 'postgres'])
  const env: Record<string, string> = {
    MEM_DATA_DIR: join(directory, 'data'),
    ...(postgres && { ...Object.fromEntries(seams), MEM_METADATA_DSN: postgres.url }),
  }
  const config = (more: Record<string, string> = {}): Config => {
    const all = { HOME: directory, MEM_ADDR: '127.0.0.1:0', ...env, ...more }
    const loaded = loadConfig({ env: all, cwd: directory })
    return { ...loaded, telemetry: { ...loaded.telemetry, log_level: 'error' } }
  }
  return {
    dialect,
    directory,
    env,
    config,
    open: () => openDatabase(addressOf(config(), config().stores.metadata)),
    remove: async () => {
      await postgres?.drop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The first organization, with an admin `ada@example.org`. */
export const initialize = (place: Place): Promise<unknown> =>
  withPlatform(place.config(), { upgrade: true, scrypt: CHEAP }, ({ organizations }) =>
    organizations.initialize({ organization: 'Acme', email: 'ada@example.org', password: PASSWORD }),
  )

/** Another organization, with an admin `<name>@example.net`. */
export const addOrganization = (place: Place, name: string): Promise<unknown> =>
  withPlatform(place.config(), { upgrade: false, scrypt: CHEAP }, ({ organizations }) =>
    organizations.add({ organization: name, email: `${name}@example.net`, password: PASSWORD }),
  )

/** Starts a server in this process over an initialized place. */
export async function startPlatform(place: Place, env: Record<string, string> = {}): Promise<PlatformApi> {
  const clock = adjustableClock()
  const app = await createApp(place.config(env), { clock, scrypt: CHEAP })
  const url = await app.listen()
  let admin = ''
  const call: PlatformApi['call'] = async (method, path, body, { token = admin, headers = {}, raw } = {}) => {
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(url + (path.startsWith('//') ? path.slice(1) : `/rest/v1/platform${path}`), {
      method,
      headers: {
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(sent !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(sent !== undefined && { body: sent }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
  const login = async (email: string, password = PASSWORD): Promise<string> =>
    expectOk(await call('POST', '/login', { email, password }, { token: null })).token
  admin = await login('ada@example.org')
  return {
    url,
    place,
    admin,
    advance: clock.advance,
    call,
    login,
    user: async (email, fields = {}) => {
      const { id } = expectOk(await call('POST', '/users', { email, password: PASSWORD, ...fields }), 201)
      return { id, token: await login(email) }
    },
    project: async (name) => expectOk(await call('POST', '/projects', { name }), 201).id,
    stop: () => app.close(),
  }
}

/** Expects success and gives the body. */
export function expectOk({ status, body }: Reply, expected = 200): Reply['body'] {
  expect({ status, body }).toMatchObject({ status: expected })
  if (expected === 204) expect(body).toBeUndefined()
  return body
}

/** Expects the envelope of git-host.md 2.6 with these details. */
export function expectError({ status, body }: Reply, expected: number, code: string, details = {}): void {
  expect({ status, body }).toMatchObject({ status: expected, body: { error: { code, details } } })
  expect(body).toEqual({ error: { code, message: expect.stringMatching(/./), details: expect.any(Object) } })
}

/** Runs the tests over a place in SQLite and one in PostgreSQL. */
export function describeInPlaces(name: string, define: (place: () => Place) => void): void {
  for (const dialect of ['sqlite', 'postgres'] as const) {
    describe.skipIf(dialect === 'postgres' && !hasPostgres)(`${name} [${dialect}]`, () => {
      let place: Place | undefined
      beforeAll(async () => {
        place = await createPlace(dialect)
      })
      afterAll(() => place?.remove())
      define(() => {
        if (!place) throw new Error('the place is not there yet')
        return place
      })
    })
  }
}

/** Runs the tests against an initialized server on each database; failed logins of one test do not count in the next. */
export function describePlatform(name: string, define: (api: () => PlatformApi) => void): void {
  describeInPlaces(name, (place) => {
    let api: PlatformApi | undefined
    beforeAll(async () => {
      await initialize(place())
      api = await startPlatform(place())
    })
    beforeEach(() => api?.advance(15 * 60_000))
    afterAll(() => api?.stop())
    define(() => {
      if (!api) throw new Error('the server is not up yet')
      return api
    })
  })
}
