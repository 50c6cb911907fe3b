import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { isLoopback, parseAddress } from '../config/address.ts'
import { maskPassword } from '../config/dsn.ts'
import { ConfigError } from '../config/errors.ts'
import type { Config } from '../config/load.ts'
import { createDefaultAuthorizer } from '../kernel/actions/authorizer.ts'
import { createSkillCatalog, readSkillFiles } from '../kernel/actions/catalog.ts'
import { createCredentialResolver, type CredentialSource } from '../kernel/actions/credentials.ts'
import { createHttpTransport } from '../kernel/actions/http-transport.ts'
import type { ActionParts } from '../kernel/context.ts'
import { defaultPolicy } from '../kernel/policy.ts'
import { mountKernel, type EdgeOptions } from '../kernel/routes/edge.ts'
import { Kernel } from '../kernel/service.ts'
import { newPostgresStore, newSqliteStore, type KernelStore } from '../kernel/store/store.ts'
import { componentsOf } from '../kernel/wiring.ts'
import { readKernelContext } from './kernel-context.ts'

/** The kernel of a server, over the store of the configuration. */
export interface ServedKernel {
  kernel: Kernel
  mount(listener: FastifyInstance, options: EdgeOptions): void
  start(): Promise<void>
  /** Claims nothing more, and gives what is under way 10 s. */
  stop(): Promise<void>
  close(): Promise<void>
}

interface Surroundings {
  clock: Clock
  log: Logger
  environment: Readonly<Record<string, string | undefined>>
}

/** The person at this machine. Contract: kernel-2.md 16 */
const OPERATOR = { type: 'user', id: 'local' }

/** @throws ConfigError for a store, skill or credential file that cannot be used */
export async function createKernel(config: Config, surroundings: Surroundings): Promise<ServedKernel> {
  const { kernel: settings } = config
  if (settings.standaloneOperator) requireLoopback(config)
  const log = surroundings.log.child({ service: 'kernel' }, { level: settings.logLevel })
  const credentials = readKernelContext(settings.contextFile)
  const parts = {
    agents: true,
    actions: await actionParts(config, credentials, { ...surroundings, log }),
    ...(settings.standaloneOperator && { approvalAuthorizer: createDefaultAuthorizer() }),
  }
  const store = await openStore(config, surroundings.clock)
  const components = componentsOf(parts, settings.workers.scopes.length > 0)
  const kernel = new Kernel({ store, log, components, ...parts })
  return {
    kernel,
    mount: (listener, options) => mountKernel(listener, kernel, options),
    start: async () => {},
    stop: async () => {},
    close: () => store.close(),
  }
}

async function actionParts(
  { kernel: { registry, standaloneOperator } }: Config,
  credentials: readonly CredentialSource[],
  { environment, log }: Surroundings,
): Promise<ActionParts> {
  const { definitions, failures } = await readSkillFiles(registry.skillsDir)
  for (const { file, error } of failures) log.warn({ file, reason: error }, 'a skill cannot be used')
  return {
    catalog: createSkillCatalog(definitions),
    policy: standaloneOperator ? defaultPolicy(OPERATOR) : defaultPolicy(),
    validators: [],
    transports: { http: createHttpTransport() },
    credentials: createCredentialResolver(credentials, (name) => environment[name]),
  }
}

/** Whoever reaches the kernel approves: that must be nobody but who is at this machine. @throws ConfigError */
function requireLoopback({ kernel: { api }, server }: Config): void {
  const addr = api.listenAddr === '' ? server.addr : api.listenAddr
  if (isLoopback(parseAddress(addr)?.host ?? '')) return
  throw new ConfigError('--standalone-operator', `--standalone-operator needs a loopback address, not ${addr}`)
}

async function openStore({ kernel: { storage } }: Config, clock: Clock): Promise<KernelStore> {
  const [key, place] = storage.driver === 'sqlite' ? ['path', storage.path] : ['dsn', maskPassword(storage.dsn)]
  try {
    return storage.driver === 'sqlite'
      ? await newSqliteStore(storage.path, clock)
      : await newPostgresStore(storage.dsn, { schema: storage.schema, clock })
  } catch (error) {
    throw new ConfigError(
      `kernel.storage.${key}`,
      `kernel.storage.${key} ${place} cannot be used: ${maskPassword(errorText(error))}`,
    )
  }
}
