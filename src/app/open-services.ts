import type { Clock } from '../base/clock.ts'
import { createIdSource, type IdSource } from '../base/ids.ts'
import { createLogger } from '../base/log.ts'
import type { Config } from '../config/load.ts'
import type { Gateway } from '../gateway/service.ts'
import { raiseRevision } from '../gateway/store/revisions.ts'
import type { ScryptParameters } from '../platform/passwords.ts'
import type { UserWatch } from '../platform/ports.ts'
import type { Platform } from '../platform/service.ts'
import type { ServedKernel } from './kernel.ts'
import { createMemory, type Memory } from './memory.ts'
import { createPlatform, openMetadata } from './platform.ts'
import { SERVICES, type ServiceName } from './services.ts'

export interface AppOptions {
  /** A test may set its time. */
  clock?: Clock
  services?: readonly ServiceName[]
  /** A test may make password hashes cheap. */
  scrypt?: ScryptParameters
  /** The process's variables, for what the clouds' own programs read there. */
  environment?: Readonly<Record<string, string | undefined>>
}

export interface Services {
  memory: Memory | undefined
  platform: Platform | undefined
  gateway: Gateway | undefined
  kernel: ServedKernel | undefined
  ids: IdSource
  log: ReturnType<typeof createLogger>
  close(): Promise<void>
}

/** The services asked for, over their stores; those in one database share its connections. */
export async function openServices(config: Config, options: AppOptions & { clock: Clock }): Promise<Services> {
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
      const { createKernel } = await import('./kernel.ts')
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
      const { Gateway } = await import('../gateway/service.ts')
      gateway = new Gateway({ config, platform, clock, ids, log, environment, random: Math.random })
    }
    return { memory, platform, gateway, kernel, ids, log, close }
  } catch (error) {
    await close()
    throw error
  }
}
