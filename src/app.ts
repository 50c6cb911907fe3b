import type { FastifyInstance } from 'fastify'
import { isLocal, mountGateway, mountMemoryDoors, mountPlatform, readinessOf } from './app/doors.ts'
import { openServices, type AppOptions } from './app/open-services.ts'
import { explained } from './app/platform.ts'
import { SERVICES } from './app/services.ts'
import { systemClock } from './base/clock.ts'
import { errorText } from './base/errors.ts'
import { parseAddress } from './config/address.ts'
import { ConfigError } from './config/errors.ts'
import { keyTag } from './config/key-file.ts'
import type { Config } from './config/load.ts'
import { checkStart } from './config/start-matrix.ts'
import { readTls } from './config/tls.ts'
import { replaceCertificate } from './http/certificate.ts'
import { healthRoutes } from './http/health.ts'
import { createListener } from './http/listener.ts'
import { mountOpen, unreadable } from './platform/routes/index.ts'

const SHUTDOWN_MS = 15_000
/** What is left of it at least for requests beside the calls of models. */
const LAST_MS = 1000

export interface App {
  /** Binds the configured address and gives the URL. @throws ConfigError when a store or the address cannot be used */
  listen(): Promise<string>
  /** Lets running requests end, 15 s at most, then closes the stores. */
  close(): Promise<void>
  /** Serves the certificate that the files hold now, without dropping a connection; keeps the old one when it is no good. */
  reloadCertificate(): Promise<void>
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
  if (memory) await mountMemoryDoors(listener, memory, opened, config, clock, () => tls?.cert)
  else mountOpen(listener, platform ? healthRoutes(() => readinessOf(platform)) : [])
  if (platform) mountPlatform(listener, platform, gateway, config)
  if (gateway) mountGateway(listener, gateway, clock, memory !== undefined)
  const kernelListener =
    kernel && listenAddr !== ''
      ? createListener({ ...ofListener, tls, unreadable: (message) => kernel.unreadable(message) })
      : listener
  if (kernel) {
    kernel.mount(kernelListener, {
      token: config.kernel.token ?? config.apiKey,
      localOrigins: isLocal(config, kernelListener === listener ? server.addr : listenAddr)
        ? allowedOrigins
        : undefined,
    })
  }
  return {
    listen: async () => {
      await explained(config, async () => gateway?.start())
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
