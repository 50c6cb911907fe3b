import type { FastifyInstance } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { sha256 } from '../base/hash.ts'
import { renderMetrics } from '../base/metrics.ts'
import { processMetrics } from '../base/process-metrics.ts'
import { keyTag } from '../config/key-file.ts'
import type { Config } from '../config/load.ts'
import { printableConfig } from '../config/print.ts'
import { bindsLoopback } from '../config/start-matrix.ts'
import { mountGatewayConsole } from '../console/gateway.ts'
import { mountConsole } from '../console/index.ts'
import type { KernelConsole } from '../console/kernel/kernel.ts'
import { probe } from '../database/probe.ts'
import { mountGatewayMetrics } from '../gateway/observe/metrics-route.ts'
import type { Gateway } from '../gateway/service.ts'
import { measureRequests } from '../http/metrics.ts'
import { memoryMetrics } from '../memory/metrics.ts'
import { mountMemory, metricsRoute } from '../memory/routes/index.ts'
import { mountRest, platformRoutes } from '../platform/routes/index.ts'
import type { Platform } from '../platform/service.ts'
import type { ServedKernel } from './kernel.ts'
import type { Memory } from './memory.ts'
import type { Services } from './open-services.ts'

/** Whether an address is reached from this machine alone, and so without a key. */
export const isLocal = ({ server }: Config, addr: string): boolean => bindsLoopback(addr) && !server.allow_no_auth

/** Memory over REST, as tools and as pages, with the figures of the process. */
export async function mountMemoryDoors(
  listener: FastifyInstance,
  memory: Memory,
  { gateway, kernel }: Services,
  config: Config,
  clock: Clock,
  certificate: () => string | undefined,
): Promise<void> {
  const { server, apiKey } = config
  const access = {
    apiKey,
    apiKeyId: apiKey === undefined ? undefined : keyTag(apiKey),
    guardLoopback: isLocal(config, server.addr),
    timeoutMs: server.timeout,
  }
  const multiTenant = server.mode === 'multi-tenant'
  const figures = [
    ...measureRequests(listener),
    ...memoryMetrics(memory.service.seams, memory.index, clock),
    ...processMetrics(),
  ]
  const others = [metricsRoute(() => renderMetrics(figures))]
  if (server.mcp_enable) {
    const { mcpRoutes, mountMcpSocket } = await import('../mcp/http.ts')
    const { toolParts } = await import('./tools.ts')
    const parts = toolParts(config, memory)
    const settings = { apiKeyId: access.apiKeyId, multiTenant }
    mountMcpSocket(listener, parts, settings)
    others.push(...mcpRoutes(parts, settings))
  }
  mountMemory(listener, memory.service, { ...access, allowedOrigins: server.allowed_origins, multiTenant }, others)
  const pages = {
    ...access,
    hasGateway: gateway !== undefined,
    configuration: printableConfig(config),
    get certificate() {
      return certificate()
    },
  }
  mountConsole(listener, memory.service, clock, pages, kernelPages(config, kernel))
}

/** Whoever signs in with the server's key: not where the kernel has a token of its own, which that key must not stand for. */
const kernelPages = ({ kernel: settings }: Config, served: ServedKernel | undefined): KernelConsole | undefined =>
  served && settings.token === undefined
    ? { kernel: served.kernel, scopes: [settings.scope, ...settings.workers.scopes] }
    : undefined

export function mountPlatform(
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
export async function readinessOf({ database }: Platform): Promise<{ ok: boolean; status: string; adapter: object }> {
  const primary = await probe(database)
  const ok = primary === 'ok'
  return { ok, status: ok ? 'ready' : 'degraded', adapter: { primary } }
}

/** What of the gateway the framework serves: its scrape and its pages. */
export function mountGateway(listener: FastifyInstance, gateway: Gateway, clock: Clock, hasMemory: boolean): void {
  mountGatewayMetrics(listener, {
    metrics: gateway.metrics,
    organizationOf: (tokenHash) => gateway.organizationOf(tokenHash),
    operatorToken: gateway.operatorToken,
  })
  mountGatewayConsole(listener, clock, { hasMemory })
}
