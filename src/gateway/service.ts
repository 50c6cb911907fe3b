import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { IdSource } from '../base/ids.ts'
import { requestLog } from '../base/log.ts'
import { rest } from '../base/rest.ts'
import type { Config } from '../config/load.ts'
import type { Front } from '../http/listener.ts'
import type { Route } from '../platform/routes/route.ts'
import type { Platform } from '../platform/service.ts'
import { CallActs } from './acts.ts'
import { createCache } from './cache/cache.ts'
import type { ModelTable } from './cost/model-table.ts'
import { latestState } from './credential-answer.ts'
import { createExchanges } from './exchange/make-exchange.ts'
import { readGatewayFiles } from './files.ts'
import { createUpstreams } from './kinds/index.ts'
import { createNetwork, type Network } from './kinds/network.ts'
import { createCredentialTest } from './kinds/test.ts'
import { GatewayManagement } from './management.ts'
import { Analytics } from './metering/analytics.ts'
import { Bookkeeping } from './metering/bookkeeping.ts'
import { Costs } from './metering/costs.ts'
import { Usage } from './metering/usage.ts'
import { createGatewayMetrics, type GatewayMetrics } from './observe/metrics.ts'
import { createObserver } from './observe/observer.ts'
import { redactor } from './observe/redact.ts'
import { SpanExporter } from './observe/traces.ts'
import { createPlane, type Plane } from './plane/index.ts'
import type { PlaneSettings } from './plane/parts.ts'
import { analyticsRoutes } from './routes/analytics.ts'
import { costRoutes } from './routes/cost.ts'
import { gatewayRoutes } from './routes/index.ts'
import { usageRoutes } from './routes/usage.ts'
import { CallerLimits } from './routing/limits.ts'
import { Router } from './routing/router.ts'
import type { OrganizationState } from './state/organization-state.ts'

export interface GatewayParts {
  config: Config
  platform: Platform
  clock: Clock
  ids: IdSource
  log: Logger
  /** The process's variables, for what the clouds' own programs read there. */
  environment: Readonly<Record<string, string | undefined>>
  /** In [0, 1). */
  random: () => number
}

/** The model gateway: its data plane and its management over one platform. Contract: gateway.md. */
export class Gateway {
  readonly management: GatewayManagement
  readonly routes: Route[]
  readonly metrics: GatewayMetrics
  readonly front: Front
  /** Sees the series of every organization at the scrape. */
  readonly operatorToken: string | undefined
  readonly #parts: GatewayParts
  readonly #table: ModelTable
  readonly #makeUpstream: ReturnType<typeof createUpstreams>
  readonly #router: Router
  readonly #books: Bookkeeping
  readonly #acts: CallActs
  readonly #plane: Plane
  readonly #network: Network
  readonly #exporter: SpanExporter | undefined

  /** @throws ConfigError for what `readGatewayFiles` cannot use */
  constructor(parts: GatewayParts) {
    const { config, clock, log, environment, random } = parts
    const { gateway, telemetry } = config
    this.#parts = parts
    const { table, ca, operatorToken } = readGatewayFiles(config)
    this.#table = table
    this.operatorToken = operatorToken
    this.#network = createNetwork({
      allowedHosts: gateway.allowed_hosts,
      ca,
      connectMs: gateway.timeouts.connect,
    })
    const [network, runtimeRoles] = [this.#network, gateway.runtime_roles]
    this.#makeUpstream = createUpstreams({ clock, random, log, network, runtimeRoles, environment })
    this.#books = new Bookkeeping({
      ...parts,
      stateOf: this.#stateOf,
      states: () => this.management.states.all(),
      onExceeded: (organizationId, { type, id }) => {
        const key = type === 'key' ? this.#stateOf(organizationId)?.keys.find((each) => each.id === id) : undefined
        const target = { type, id, ...(key && { name: key.name }) }
        this.management.audit.system(organizationId, 'budget.exceeded', target)
      },
    })
    this.#router = this.#createRouter()
    this.management = this.#createManagement()
    const { states, audit, health } = this.management
    this.#acts = new CallActs(audit, health)
    states.onChange((state) => this.#router.update(state))
    const { otlp_endpoint: endpoint, otlp_headers: headers } = telemetry
    this.#exporter = endpoint === undefined ? undefined : new SpanExporter({ endpoint, headers, log })
    this.metrics = this.#createMetrics()
    this.#plane = this.#createPlane()
    this.front = this.#plane
    this.routes = this.#createRoutes()
  }

  readonly #stateOf = (organizationId: number): OrganizationState | undefined =>
    this.management.states.get(organizationId)

  readonly #liveProcesses = (): number => this.#books.processes.count()

  #createRouter(): Router {
    const { clock, random, config } = this.#parts
    const { gateway } = config
    return new Router({
      clock,
      models: this.#table,
      makeUpstream: this.#makeUpstream,
      seed: gateway.seed ?? Math.floor(random() * 2 ** 31),
      retryBudget: gateway.retry_budget,
      queueLength: gateway.queue_length,
      queueWaitMs: gateway.queue_wait,
      processes: this.#liveProcesses,
      onRejected: (credential, untilMs, rejection) => this.#acts.rejected(credential, untilMs, rejection),
    })
  }

  #createManagement(): GatewayManagement {
    const { platform, clock, log, config } = this.#parts
    return new GatewayManagement({
      platform,
      clock,
      log,
      allowedHosts: config.gateway.allowed_hosts,
      runtimeRoles: config.gateway.runtime_roles,
      maxRequestBytes: config.gateway.max_request_bytes,
      live: this.#router,
      spentOf: (organizationId, keyIds) => this.#books.spending.spentOf(organizationId, keyIds),
      testCredential: createCredentialTest({ makeUpstream: this.#makeUpstream, clock }),
    })
  }

  #createMetrics(): GatewayMetrics {
    const { states } = this.management
    return createGatewayMetrics({
      stateOf: this.#stateOf,
      table: () => this.#table,
      figures: {
        activeRequests: () => [...states.all()].map(({ id }): [number, number] => [id, this.#plane.activeRequests(id)]),
        credentialStates: () =>
          [...states.all()].flatMap(({ id: organizationId, credentials }) =>
            credentials.map((each) => ({
              organizationId,
              credentialId: each.id,
              state: latestState(this.#router.healthOf(each.id), each.tested),
            })),
          ),
        budgetsLeft: () => this.#books.spending.left(states.all()),
        metering: () => this.#books.meter.figures(),
      },
    })
  }

  #createPlane(): Plane {
    const { config, platform, clock, ids, log, random } = this.#parts
    const observer = createObserver(this.metrics, this.#exporter)
    return createPlane({
      clock,
      monotonic: () => performance.now(),
      random,
      ids,
      wait: rest,
      log,
      logRequest: requestLog(log),
      settings: planeSettings(config),
      states: this.management.states,
      sessions: platform.sessions,
      requireInitialized: () => platform.organizations.requireInitialized(),
      router: this.#router,
      limits: new CallerLimits({ clock, processes: this.#liveProcesses }),
      makeExchange: createExchanges({ clock, redactor }),
      table: () => this.#table,
      metering: this.#books.meter,
      budgets: this.#books.budgets,
      observer: {
        ...observer,
        finished: (call) => {
          observer.finished(call)
          this.#acts.finished(call)
        },
      },
      cache: createCache(config.gateway.cache_bytes, clock),
    })
  }

  #createRoutes(): Route[] {
    const { clock, platform } = this.#parts
    const { database, sealer } = platform
    const { audit, settings } = this.management
    const { spending } = this.#books
    return [
      ...gatewayRoutes(this.management, (...asked) => this.#router.explain(...asked)),
      ...usageRoutes(new Usage({ database, sealer, audit })),
      ...analyticsRoutes(new Analytics(database, clock, (id) => this.#plane.activeRequests(id))),
      ...costRoutes(new Costs({ database, clock, spending, table: this.#table, stateOf: this.#stateOf }), settings),
    ]
  }

  /** Reads what requests need, and begins what goes on beside them. @throws when the database cannot be read */
  async start(): Promise<void> {
    await this.#books.start()
    await this.management.start()
  }

  /** Whose metrics token has this SHA-256, hex; notes that it was used. */
  organizationOf(tokenHash: string): number | undefined {
    const { states, metricsTokens } = this.management
    const organization = states.byMetricsToken(tokenHash)?.id
    if (organization !== undefined) {
      metricsTokens.used(organization).catch((error: unknown) => {
        this.#parts.log.warn({ reason: errorText(error) }, 'the use of a metrics token could not be noted')
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
    await this.#books.close()
    await this.management.close()
    await this.#exporter?.close()
    this.#network.close()
  }
}

const planeSettings = ({ gateway, server, platform: { base_url: shown } }: Config): PlaneSettings => ({
  maxRequestBytes: gateway.max_request_bytes,
  maxResponseBytes: gateway.max_response_bytes,
  timeouts: gateway.timeouts,
  commitAfterMs: gateway.commit_after,
  maxAttempts: gateway.max_attempts,
  maxRetryAfterMs: gateway.max_retry_after,
  maxActiveRequests: gateway.max_active_requests,
  allowedOrigins: [...server.allowed_origins, ...(shown === undefined ? [] : [new URL(shown).origin])],
})
