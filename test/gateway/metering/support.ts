import { afterAll, beforeAll } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import type { Database, Queryable } from '../../../src/database/database.ts'
import { optional } from '../../../src/database/rows.ts'
import { ModelTable } from '../../../src/gateway/cost/model-table.ts'
import { parseUsd } from '../../../src/gateway/cost/money.ts'
import { GatewayMetering } from './process.ts'
import { Analytics } from '../../../src/gateway/metering/analytics.ts'
import { Costs } from '../../../src/gateway/metering/costs.ts'
import { Spending } from '../../../src/gateway/metering/spending.ts'
import { Usage } from '../../../src/gateway/metering/usage.ts'
import { analyticsRoutes } from '../../../src/gateway/routes/analytics.ts'
import { costRoutes } from '../../../src/gateway/routes/cost.ts'
import { usageRoutes } from '../../../src/gateway/routes/usage.ts'
import type { GatewayCaller, OpenKey, OrganizationState } from '../../../src/gateway/state/organization-state.ts'
import type { Budget, Settings, UsageRecord } from '../../../src/gateway/model.ts'
import { DEFAULT_SETTINGS } from '../../../src/gateway/store/settings.ts'
import type { Logger } from '../../../src/platform/ports.ts'
import { Sealer } from '../../../src/platform/sealing/sealer.ts'
import { upgradeSchema } from '../../../src/platform/schema.ts'
import { addOrganization, describeInPlaces, initialize, type Place } from '../../platform/support.ts'
import { startGateway, type GatewayApi } from '../support.ts'

export { usageRecord } from './records.ts'

export const LOG = { info: () => undefined, warn: () => undefined, error: () => undefined }

export const stateOf = (settings: Partial<Settings>, keys: OpenKey[] = []): OrganizationState => ({
  id: 1,
  revision: 1,
  settings: { ...DEFAULT_SETTINGS, ...settings },
  credentials: [],
  aliases: [],
  keys,
  users: new Map([[1, { role: 'admin' }]]),
  metricsTokenHash: undefined,
})

export const keyOf = (id: number, budget?: Budget): OpenKey => ({
  id,
  organizationId: 1,
  name: `key ${id}`,
  hashes: [],
  userId: undefined,
  allowedModels: [],
  allowedCredentials: [],
  budget,
  limits: {},
  maxOutputTokens: undefined,
  expiresAt: undefined,
  enabled: true,
})

export const callerOf = (settings: Partial<Settings>, more: Partial<GatewayCaller> = {}): GatewayCaller => ({
  state: stateOf(settings),
  userId: 1,
  key: undefined,
  ...more,
})

export const usd = (text: string): bigint => parseUsd(text) ?? 0n

export const budgetOf = (
  limit_usd: string,
  window: Budget['window'] = 'month',
  unknown_price: Budget['unknown_price'] = 'deny',
) => ({
  limit_usd,
  window,
  unknown_price,
})

/** A clock that stands still until it is told. */
export function stillClock(
  at = Date.UTC(2026, 10, 18, 12),
): Clock & { set(ms: number): void; advance(ms: number): void } {
  let now = at
  return { now: () => now, set: (ms) => void (now = ms), advance: (ms) => void (now += ms) }
}

/** A database that is away when told. */
export interface FragileDatabase extends Database {
  isAway: boolean
  /** What is asked is done, and the answer lost. */
  losesAnswers: boolean
}

export const fragile = (database: Database): FragileDatabase => ({
  dialect: database.dialect,
  location: database.location,
  isAway: false,
  losesAnswers: false,
  get: (sql, params) => database.get(sql, params),
  all: (sql, params) => database.all(sql, params),
  run: (sql, params) => database.run(sql, params),
  async transaction(fn) {
    if (this.isAway) throw new Error('the database is away')
    const result = await database.transaction(fn)
    if (this.losesAnswers) throw new Error('the answer never came')
    return result
  },
  snapshot: (fn) => database.snapshot(fn),
  version: () => database.version(),
  ping: () => database.ping(),
  scrub: () => database.scrub(),
  close: () => database.close(),
})

/** A database whose transactions wait while it stands still; how many were begun. */
export interface StallingDatabase extends FragileDatabase {
  begun: number
  stall(): void
  goOn(): void
}

export function stalling(database: Database): StallingDatabase {
  let going = Promise.resolve()
  let goOn = (): void => undefined
  const through = fragile(database)
  return Object.assign(through, {
    begun: 0,
    stall: () => void (going = new Promise((resolve) => (goOn = resolve))),
    goOn: () => goOn(),
    async transaction<T>(this: StallingDatabase, fn: (tx: Queryable) => Promise<T>): Promise<T> {
      this.begun++
      await going
      return database.transaction(fn)
    },
  })
}

interface MeteringOptions {
  clock: Clock
  database?: Database
  dataDir?: string
  flushRows?: number
  onFull?: 'reject' | 'drop'
  spillBytes?: number
  writeTimeoutMs?: number
  drawTimeoutMs?: number
  log?: Logger
  states?: () => Iterable<OrganizationState>
}

/** The metering of one process over a place whose schema is there; timers do not run: tests call `flush` and `beat`. */
export function processOver(place: Place, options: MeteringOptions): GatewayMetering & { database: Database } {
  const database = options.database ?? place.open()
  const metering = new GatewayMetering({
    database,
    clock: options.clock,
    log: options.log ?? LOG,
    sealer: new Sealer(place.config().platform.key_file, LOG),
    dataDir: options.dataDir ?? place.config().storage.data_dir,
    flushIntervalMs: 200,
    flushRows: options.flushRows ?? 500,
    onFull: options.onFull ?? 'reject',
    random: () => 1,
    ...optional('spillBytes', options.spillBytes),
    ...optional('writeTimeoutMs', options.writeTimeoutMs),
    ...optional('drawTimeoutMs', options.drawTimeoutMs),
    states: options.states ?? (() => []),
  })
  return Object.assign(metering, { database })
}

/** Runs the tests over a place on each database with the schema and an organization. */
export function describeMetering(name: string, define: (place: () => Place) => void): void {
  describeInPlaces(name, (place) => {
    beforeAll(async () => {
      await initialize(place())
      const database = place().open()
      await upgradeSchema(database, 1)
      await database.close()
    })
    define(place)
  })
}

/** A server with the routes of usage, analytics and cost, and metering over the same database. */
export interface MeteringApi extends GatewayApi {
  readonly metering: GatewayMetering
}

export const TABLE = new ModelTable('2026-11-01', () => [
  [
    {
      provider: 'openai',
      model: 'gpt-5',
      usd_per_million: { input: usd('1.25'), output: usd('10') },
      sampling: true,
      reasoning: 'none',
    },
    { provider: 'openai', model: 'gpt-*', sampling: true, reasoning: 'none' },
  ],
])

export async function startMeteringApi(place: Place): Promise<MeteringApi> {
  let metering: GatewayMetering | undefined
  const api = await startGateway(place, {
    routes: ({ database, clock, management, platform }) => {
      const made = processOver(place, { database, clock, states: () => management.states.all() })
      metering = made
      const stateOfOrganization = (id: number) => management.states.get(id)
      const spending = new Spending(database, clock, stateOfOrganization)
      const costs = new Costs({ database, clock, spending, table: TABLE, stateOf: stateOfOrganization })
      return [
        ...usageRoutes(new Usage({ database, sealer: platform.sealer, audit: management.audit })),
        ...analyticsRoutes(new Analytics(database, clock, () => 4)),
        ...costRoutes(costs, management.settings),
      ]
    },
  })
  if (!metering) throw new Error('routes were not asked for')
  return { ...api, metering }
}

/** Runs the tests against a server over each database; `bo@example.net` is admin of a second organization. */
export function describeMeteringApi(name: string, define: (api: () => MeteringApi) => void): void {
  describeInPlaces(name, (place) => {
    let api: MeteringApi | undefined
    beforeAll(async () => {
      await initialize(place())
      await addOrganization(place(), 'bo')
      api = await startMeteringApi(place())
    })
    afterAll(() => api?.stop())
    define(() => {
      if (!api) throw new Error('the server is not up yet')
      return api
    })
  })
}

export const iso = (ms: number): string => new Date(ms).toISOString()

/** Puts records where the routes find them. */
export async function keep({ metering }: MeteringApi, records: readonly UsageRecord[]): Promise<void> {
  for (const record of records) metering.meter.record(record)
  await metering.meter.flush()
}

/** By rank: what so large a share of all does not exceed. */
export const percentileOf = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.ceil(share * values.length) - 1] ?? 0
