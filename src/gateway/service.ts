import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { IdSource } from '../base/ids.ts'
import { ConfigError } from '../config/errors.ts'
import type { Config } from '../config/load.ts'
import type { Front } from '../http/listener.ts'
import type { Logger } from '../platform/ports.ts'
import type { Route } from '../platform/routes/route.ts'
import type { Platform } from '../platform/service.ts'
import { CallActs } from './acts.ts'
import { createCache } from './cache/cache.ts'
import { loadModelTable } from './cost/load.ts'
import { createExchanges } from './exchange/make-exchange.ts'
import { createUpstreams } from './kinds/index.ts'
import { createNetwork, type Network } from './kinds/network.ts'
import { createCredentialTest } from './kinds/test.ts'
import { GatewayManagement } from './management.ts'
import { Analytics } from './metering/analytics.ts'
import { ProcessBudgets } from './metering/budgets.ts'
import { Costs } from './metering/costs.ts'
import { RequestMeter } from './metering/meter.ts'
import { Processes } from './metering/processes.ts'
import { Retention } from './metering/retention.ts'
import { Spending } from './metering/spending.ts'
import { Usage } from './metering/usage.ts'
import { createGatewayMetrics, type GatewayMetrics } from './observe/metrics.ts'
import { createObserver } from './observe/observer.ts'
import { redactor } from './observe/redact.ts'
import { SpanExporter } from './observe/traces.ts'
import { createPlane, type Plane } from './plane/index.ts'
import { analyticsRoutes } from './routes/analytics.ts'
import { costRoutes } from './routes/cost.ts'
import { gatewayRoutes } from './routes/index.ts'
import { usageRoutes } from './routes/usage.ts'
import { CallerLimits } from './routing/limits.ts'
import { Router } from './routing/router.ts'

export interface GatewayParts {
  config: Config
  platform: Platform
  clock: Clock
  ids: IdSource
  log: Logger
  /** The process's variables, for what the clouds' own programs read there. */
  environment: Readonly<Record<string, string | undefined>>
  /** In [0, 1). */
  random?: () => number
}

/** The model gateway: its data plane and its management over one platform. Contract: gateway.md. */
export class Gateway {
  readonly management: GatewayManagement
  readonly routes: Route[]
  readonly metrics: GatewayMetrics
  readonly front: Front
  /** Sees the series of every organization at the scrape. */
  readonly operatorToken: string | undefined
  readonly #log: Logger
  readonly #plane: Plane
  readonly #network: Network
  readonly #meter: RequestMeter
  readonly #processes: Processes
  readonly #retention: Retention
  readonly #exporter: SpanExporter | undefined

  /** @throws ConfigError for a price file or roots that cannot be read */
  constructor({ config, platform, clock, ids, log, environment, random = Math.random }: GatewayParts) {
    const { gateway, telemetry, storage, server, platform: shown } = config
    const { database, sealer, organizations, sessions } = platform
    this.#log = log
    const table = loadModelTable({ prices: gateway.prices, priceFile: gateway.price_file })
    this.#network = createNetwork({
      allowedHosts: gateway.allowed_hosts,
      ca: gateway.ca_file === undefined ? undefined : readText('gateway.ca_file', gateway.ca_file),
      connectMs: gateway.timeouts.connect,
    })
    const runtimeRoles = gateway.runtime_roles
    const makeUpstream = createUpstreams({ clock, random, log, network: this.#network, runtimeRoles, environment })
    this.#processes = new Processes(database, clock, log)
    const processes = (): number => this.#processes.count()
    const stateOf = (organizationId: number) => this.management.states.get(organizationId)

    const router = new Router({
      clock,
      models: table,
      makeUpstream,
      seed: gateway.seed ?? Math.floor(random() * 2 ** 31),
      retryBudget: gateway.retry_budget,
      queueLength: gateway.queue_length,
      queueWaitMs: gateway.queue_wait,
      processes,
      onRejected: (credential, untilMs, message) => acts.rejected(credential, untilMs, message),
    })
    const spending = new Spending(database, clock, stateOf)
    this.management = new GatewayManagement({
      platform,
      clock,
      log,
      allowedHosts: gateway.allowed_hosts,
      runtimeRoles,
      live: router,
      spentOf: (organizationId, keyIds) => spending.spentOf(organizationId, keyIds),
      testCredential: createCredentialTest({ makeUpstream, clock }),
    })
    const { states, audit, health, settings } = this.management
    const acts = new CallActs(audit, health)
    states.onChange((state) => router.update(state))

    const budgets = new ProcessBudgets({
      database,
      clock,
      log,
      processes: this.#processes,
      onExceeded: (organizationId, { type, id }) => audit.system(organizationId, 'budget.exceeded', { type, id }),
    })
    this.#meter = new RequestMeter({
      database,
      clock,
      log,
      sealer,
      budgets,
      processId: this.#processes.id,
      dataDir: storage.data_dir,
      flushIntervalMs: gateway.flush_interval,
      flushRows: gateway.flush_rows,
      onFull: gateway.on_metering_full,
    })
    this.operatorToken = operatorTokenOf(gateway.metrics_token_file)
    this.#retention = new Retention(database, clock, log, () => states.all())
    const { otlp_endpoint: endpoint, otlp_headers: headers } = telemetry
    this.#exporter = endpoint === undefined ? undefined : new SpanExporter({ endpoint, headers, log })
    this.metrics = createGatewayMetrics({
      stateOf,
      table: () => table,
      figures: {
        activeRequests: () => this.#plane.active(),
        credentialStates: () =>
          [...states.all()].flatMap(({ id: organizationId, credentials }) =>
            credentials.map(({ id }) => ({ organizationId, credentialId: id, state: router.healthOf(id).state })),
          ),
        budgetsLeft: () => spending.left(states.all()),
        metering: () => this.#meter.figures(),
      },
    })
    const observer = createObserver(this.metrics, this.#exporter)
    this.#plane = createPlane({
      clock,
      monotonic: () => performance.now(),
      random,
      ids,
      wait: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
      log,
      settings: {
        maxRequestBytes: gateway.max_request_bytes,
        maxResponseBytes: gateway.max_response_bytes,
        timeouts: gateway.timeouts,
        commitAfterMs: gateway.commit_after,
        maxAttempts: gateway.max_attempts,
        maxRetryAfterMs: gateway.max_retry_after,
        maxActiveRequests: gateway.max_active_requests,
        allowedOrigins: [
          ...server.allowed_origins,
          ...(shown.base_url === undefined ? [] : [new URL(shown.base_url).origin]),
        ],
      },
      states,
      sessions,
      requireInitialized: () => organizations.requireInitialized(),
      router,
      limits: new CallerLimits({ clock, processes }),
      makeExchange: createExchanges({ clock, redactor }),
      table: () => table,
      metering: this.#meter,
      budgets,
      observer: {
        ...observer,
        finished: (call) => {
          observer.finished(call)
          acts.finished(call)
        },
      },
      cache: createCache(gateway.cache_bytes, clock),
    })
    this.front = this.#plane
    const usage = new Usage({ database, sealer, audit })
    const analytics = new Analytics(database, clock, (id) => this.#plane.activeRequests(id))
    const costs = new Costs({ database, clock, spending, table, stateOf })
    this.routes = [
      ...gatewayRoutes(this.management, (...asked) => router.explain(...asked)),
      ...usageRoutes(usage),
      ...analyticsRoutes(analytics),
      ...costRoutes(costs, settings),
    ]
  }

  /** Reads what requests need, and begins what goes on beside them. @throws when the database cannot be read */
  async start(): Promise<void> {
    await this.#processes.start()
    await this.#meter.start()
    await this.management.start()
    this.#retention.start()
  }

  /** Whose metrics token has this SHA-256, hex; notes that it was used. */
  organizationOf(tokenHash: string): number | undefined {
    const { states, metricsTokens } = this.management
    const organization = states.byMetricsToken(tokenHash)?.id
    if (organization !== undefined) {
      metricsTokens.used(organization).catch((error: unknown) => {
        this.#log.warn({ reason: errorText(error) }, 'the use of a metrics token could not be noted')
      })
    }
    return organization
  }

  /** Takes no more calls, and lets those that run end, 15 s at most. */
  stop(): Promise<void> {
    return this.#plane.close()
  }

  /** Writes what is to be written. */
  async close(): Promise<void> {
    await this.#retention.close()
    await this.#meter.close()
    await this.#processes.close()
    await this.management.close()
    await this.#exporter?.close()
    await this.#network.close()
  }
}

/** @throws ConfigError */
function operatorTokenOf(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  const token = readText('gateway.metrics_token_file', file).trim()
  if (token !== '') return token
  throw new ConfigError('gateway.metrics_token_file', `${file} is empty: it is to hold the token`)
}

function readText(key: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(key, `${file} cannot be read: ${errorText(error)}`)
  }
}
