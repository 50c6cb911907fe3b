import type { FastifyInstance } from 'fastify'
import type { ServedKernel } from './app/kernel.ts'
import { createMemory, type Memory } from './app/memory.ts'
import { createPlatform, openMetadata } from './app/platform.ts'
import { SERVICES, type ServiceName } from './app/services.ts'
import { systemClock, type Clock } from './base/clock.ts'
import { errorText } from './base/errors.ts'
import { sha256 } from './base/hash.ts'
import { createIdSource, type IdSource } from './base/ids.ts'
import { createLogger } from './base/log.ts'
import { renderMetrics } from './base/metrics.ts'
import { processMetrics } from './base/process-metrics.ts'
import { parseAddress } from './config/address.ts'
import { ConfigError } from './config/errors.ts'
import { keyTag } from './config/key-file.ts'
import type { Config } from './config/load.ts'
import { bindsLoopback, checkStart } from './config/start-matrix.ts'
import { printableConfig } from './config/print.ts'
import { readTls } from './config/tls.ts'
import { mountGatewayConsole } from './console/gateway.ts'
import { mountConsole } from './console/index.ts'
import type { KernelConsole } from './console/kernel/kernel.ts'
import { probe } from './database/probe.ts'
import { mountGatewayMetrics } from './gateway/observe/metrics-route.ts'
import type { Gateway } from './gateway/service.ts'
import { raiseRevision } from './gateway/store/revisions.ts'
import { replaceCertificate } from './http/certificate.ts'
import { healthRoutes } from './http/health.ts'
import { createListener } from './http/listener.ts'
import { measureRequests } from './http/metrics.ts'
import { memoryMetrics } from './memory/metrics.ts'
import { mountMemory, metricsRoute } from './memory/routes/index.ts'
import { mountOpen, mountRest, platformRoutes, unreadable } from './platform/routes/index.ts'
import type { ScryptParameters } from './platform/passwords.ts'
import type { UserWatch } from './platform/ports.ts'
import type { Platform } from './platform/service.ts'

const SHUTDOWN_MS = 15_000
/** What is left of it at least for requests beside the calls of models. */
const LAST_MS = 1000

export interface App {
  /** Binds the configured address and gives the URL. */
  listen(): Promise<string>
  /** Lets running requests end, 15 s at most, then closes the stores. */
  close(): Promise<void>
  /** Serves the certificate that the files hold now, without dropping a connection; keeps the old one when it is no good. */
  reloadCertificate(): Promise<void>
}

interface AppOptions {
  /** A test may set its time. */
  clock?: Clock
  services?: readonly ServiceName[]
  /** A test may make password hashes cheap. */
  scrypt?: ScryptParameters
  /** The process's variables, for what the clouds' own programs read there. */
  environment?: Readonly<Record<string, string | undefined>>
}

/**
 * Puts the server together: configuration, databases, services, listener.
 * @throws ConfigError when a store is unusable.
 */
export async function createApp(config: Config, options: AppOptions = {}): Promise<App> {
  const { clock = systemClock, services = SERVICES } = options
  const warnings = checkStart(config, { memory: services.includes('memory'), kernel: services.includes('kernel') })
  const opened = await openServices(config, { ...options, clock, services })
  const { log, ids, memory, platform, gateway, kernel } = opened
  for (const warning of warnings) log.warn({}, warning)
  const { server } = config
  let tls = await readTls(config, clock.now())
  const isLocal = (addr: string): boolean => bindsLoopback(addr) && !server.allow_no_auth
  const access = {
    apiKey: config.apiKey,
    apiKeyId: config.apiKey === undefined ? undefined : keyTag(config.apiKey),
    guardLoopback: isLocal(server.addr),
    timeoutMs: server.timeout,
  }
  const allowedOrigins = server.allowed_origins
  const ofListener = { log, ids, timeoutMs: server.timeout, allowedOrigins }
  const { listenAddr } = config.kernel.api
  const isKernels = (path = ''): boolean => (!memory && !platform) || /^\/api\/v1(\/|$)/.test(path)
  const listener = createListener({
    ...ofListener,
    tls,
    front: gateway?.front,
    unreadable: (message, path) => {
      if (listenAddr === '' && isKernels(path)) return kernel?.unreadable(message)
      return platform && (!memory || path?.startsWith('/rest/')) ? unreadable(message) : undefined
    },
  })
  const multiTenant = server.mode === 'multi-tenant'
  const figures = [
    ...measureRequests(listener),
    ...(memory ? memoryMetrics(memory.service.seams, memory.index, clock) : []),
    ...processMetrics(),
  ]
  if (memory) {
    const others = [metricsRoute(() => renderMetrics(figures))]
    if (server.mcp_enable) {
      const { mcpRoutes, mountMcpSocket } = await import('./mcp/http.ts')
      const { toolParts } = await import('./app/tools.ts')
      const parts = toolParts(config, memory)
      const settings = { apiKeyId: access.apiKeyId, multiTenant }
      mountMcpSocket(listener, parts, settings)
      others.push(...mcpRoutes(parts, settings))
    }
    mountMemory(listener, memory.service, { ...access, allowedOrigins, multiTenant }, others)
    mountConsole(
      listener,
      memory.service,
      clock,
      {
        ...access,
        hasGateway: gateway !== undefined,
        configuration: printableConfig(config),
        get certificate() {
          return tls?.cert
        },
      },
      kernelPages(config, kernel),
    )
  } else {
    mountOpen(listener, platform ? healthRoutes(() => readinessOf(platform)) : [])
  }
  if (platform) mountPlatform(listener, platform, gateway, config)
  if (gateway) mountGateway(listener, gateway, clock, memory !== undefined)
  const kernelListener =
    kernel && listenAddr !== ''
      ? createListener({ ...ofListener, tls, unreadable: (message) => kernel.unreadable(message) })
      : listener
  if (kernel) {
    kernel.mount(kernelListener, {
      token: config.kernel.token ?? config.apiKey,
      localOrigins: isLocal(kernelListener === listener ? server.addr : listenAddr) ? allowedOrigins : undefined,
    })
  }
  return {
    listen: async () => {
      await gateway?.start()
      const url = await bind(listener, 'server.addr', server.addr)
      if (kernelListener !== listener) await bind(kernelListener, 'kernel.api.listenAddr', listenAddr)
      memory?.service.start()
      await kernel?.start()
      log.info({ url, ...(config.apiKey !== undefined && { api_key_tag: keyTag(config.apiKey) }) }, 'listening')
      return url
    },
    close: async () => {
      const since = performance.now()
      // While calls of models run on, new ones are let in to be told that the server goes.
      const drain = async (): Promise<void> => {
        await gateway?.stop()
        await within(Math.max(LAST_MS, SHUTDOWN_MS - (performance.now() - since)), listener.close())
      }
      const others = Promise.all([kernel?.stop(), kernelListener === listener ? undefined : kernelListener.close()])
      await Promise.all([drain(), within(SHUTDOWN_MS, others)])
      await opened.close()
    },
    reloadCertificate: async () => {
      try {
        tls = await readTls(config, clock.now())
        if (tls) {
          replaceCertificate(listener, tls)
          replaceCertificate(kernelListener, tls)
        }
        log.info({}, 'the certificate was read again')
      } catch (error) {
        log.error({ reason: errorText(error) }, 'the certificate could not be read again; the old one stays')
      }
    },
  }
}

/** Whoever signs in with the server's key: not where the kernel has a token of its own, which that key must not stand for. */
const kernelPages = ({ kernel: settings }: Config, served: ServedKernel | undefined): KernelConsole | undefined =>
  served && settings.token === undefined
    ? { kernel: served.kernel, scopes: [settings.scope, ...settings.workers.scopes] }
    : undefined

interface Services {
  memory: Memory | undefined
  platform: Platform | undefined
  gateway: Gateway | undefined
  kernel: ServedKernel | undefined
  ids: IdSource
  log: ReturnType<typeof createLogger>
  close(): Promise<void>
}

/** The services asked for, over their stores; those in one database share its connections. */
async function openServices(config: Config, options: AppOptions & { clock: Clock }): Promise<Services> {
  const { clock, services: names = SERVICES, scrypt, environment = {} } = options
  const memory = names.includes('memory') ? await createMemory(config, clock) : undefined
  const { log, ids } = memory ?? {
    log: createLogger(config.telemetry.log_level, config.telemetry.log_format),
    ids: createIdSource(clock),
  }
  let database = memory?.service.seams.metadata
  let gateway: Gateway | undefined
  let kernel: ServedKernel | undefined
  const close = async (): Promise<void> => {
    await gateway?.close()
    await kernel?.close()
    await (memory ?? database)?.close()
  }
  try {
    if (names.includes('kernel')) {
      const { createKernel } = await import('./app/kernel.ts')
      kernel = await createKernel(config, { clock, log, environment })
    }
    const hasGateway = names.includes('gateway') // which stands on the platform
    if (!names.includes('platform') && !hasGateway) {
      return { memory, platform: undefined, gateway, kernel, ids, log, close }
    }
    database ??= await openMetadata(config)
    const userWatch: UserWatch = {
      changing: raiseRevision,
      changed: async (organizationId) => gateway?.management.states.reload(organizationId),
    }
    const platform = await createPlatform(config, database, { clock, ids, log, scrypt, userWatch })
    if (hasGateway) {
      const { Gateway } = await import('./gateway/service.ts')
      gateway = new Gateway({ config, platform, clock, ids, log, environment, random: Math.random })
    }
    return { memory, platform, gateway, kernel, ids, log, close }
  } catch (error) {
    await close()
    throw error
  }
}

function mountPlatform(
  listener: FastifyInstance,
  platform: Platform,
  gateway: Gateway | undefined,
  { server, platform: settings }: Config,
): void {
  const { base_url: baseUrl, session_ttl: sessionTtlMs } = settings
  const own = baseUrl === undefined ? [] : [new URL(baseUrl).origin]
  mountRest(listener, platform, [...platformRoutes(platform, sessionTtlMs), ...(gateway?.routes ?? [])], {
    timeoutMs: server.timeout,
    allowedOrigins: [...server.allowed_origins, ...own],
    baseUrl,
    isServiceToken: (token) => gateway?.management.states.findKey(sha256(token)) !== undefined,
  })
}

/** As memory tells it, where memory is not served. */
async function readinessOf({ database }: Platform): Promise<{ ok: boolean; status: string; adapter: object }> {
  const primary = await probe(database)
  const ok = primary === 'ok'
  return { ok, status: ok ? 'ready' : 'degraded', adapter: { primary } }
}

/** What of the gateway the framework serves: its scrape and its pages. */
function mountGateway(listener: FastifyInstance, gateway: Gateway, clock: Clock, hasMemory: boolean): void {
  mountGatewayMetrics(listener, {
    metrics: gateway.metrics,
    organizationOf: (tokenHash) => gateway.organizationOf(tokenHash),
    operatorToken: gateway.operatorToken,
  })
  mountGatewayConsole(listener, clock, { hasMemory })
}

async function bind(listener: FastifyInstance, key: string, addr: string): Promise<string> {
  const { host = '', port = 7777 } = parseAddress(addr) ?? {}
  try {
    return await listener.listen({ host: host === '' ? '::' : host, port })
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error
    throw new ConfigError(key, `cannot listen on ${addr}: ${error.message}`)
  }
}

/** Resolves with the work, or when time is up. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([work, new Promise((done) => (timer = setTimeout(done, ms)))])
  clearTimeout(timer)
}
