import { relative } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { maskPassword } from '../config/dsn.ts'
import { ConfigError } from '../config/errors.ts'
import type { Config } from '../config/load.ts'
import { bindsLoopback } from '../config/start-matrix.ts'
import { createDefaultAuthorizer } from '../kernel/actions/authorizer.ts'
import { readSkillFiles, type SkillFiles } from '../kernel/actions/catalog.ts'
import { createCredentialResolver } from '../kernel/actions/credentials.ts'
import { assemble } from '../kernel/assemble.ts'
import { createModelHost } from '../kernel/engine/model-host.ts'
import type { HealthCheck } from '../kernel/health.ts'
import type { Scope } from '../kernel/model/fields.ts'
import { defaultPolicy } from '../kernel/policy.ts'
import { mountKernel, type EdgeOptions } from '../kernel/routes/edge.ts'
import type { ModelHost } from '../kernel/ports.ts'
import { unreadable } from '../kernel/routes/refusal.ts'
import type { Kernel } from '../kernel/service.ts'
import { newPostgresStore, newSqliteStore, type KernelStore } from '../kernel/store/store.ts'
import { readKernelContext } from './kernel-context.ts'

/** The kernel of a server, over the store of the configuration. */
export interface ServedKernel {
  kernel: Kernel
  mount(listener: FastifyInstance, options: EdgeOptions): void
  /** The answer to what is no request. */
  unreadable(message: string): string
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

/** @throws ConfigError for a store or credential file that cannot be used */
export async function createKernel(config: Config, { clock, log, environment }: Surroundings): Promise<ServedKernel> {
  const { kernel: settings } = config
  if (settings.standaloneOperator) requireLoopback(config)
  const ownLog = log.child({ service: 'kernel' }, { level: settings.logLevel })
  const credentials = await readKernelContext(settings.contextFile)
  const { skillsDir } = settings.registry
  const skills = await readSkillFiles(skillsDir)
  // What can be used is: the rest is in the log and in the health.
  for (const { file, error } of skills.failures) ownLog.warn({ file, reason: error }, 'a skill cannot be used')
  const { workers } = settings
  const scopes = distinct([...workers.scopes, ...credentials.map(({ scope }) => scope)])
  const credentialResolver = createCredentialResolver(credentials, (name) => environment[name])
  const modelHost = await hostOf(config)
  const store = await openStore(config, clock)
  const { kernel, engine } = await assemble(
    {
      store,
      clock,
      skillCatalog: skills.catalog,
      workerConcurrencyLimit: workers.limit,
      ...(workers.scopes.length > 0 && {
        agentRunWorkers: { scopes, concurrency: workers.runConcurrency },
        actionWorkers: { scopes, concurrency: workers.actionConcurrency, credentialResolver },
      }),
      ...(modelHost && { modelHost }),
      ...(settings.standaloneOperator && {
        actionPolicy: defaultPolicy(OPERATOR),
        approvalAuthorizer: createDefaultAuthorizer(),
        registryMutationAuthority: true,
      }),
    },
    ownLog,
    { registry: async () => skillHealth(skillsDir, skills) },
  )
  return {
    kernel,
    mount: (listener, options) => mountKernel(listener, kernel, options),
    unreadable,
    start: () => engine.start(),
    stop: () => engine.stop(),
    close: () => store.close(),
  }
}

/** What its calls cost is looked up where the gateway looks it up. */
async function hostOf(config: Config): Promise<ModelHost | undefined> {
  const { model } = config.kernel
  if (!model) return undefined
  const { baseUrl, name, apiKey } = model
  const { modelPrice } = await import('./model-price.ts')
  return createModelHost({ baseUrl, model: name, apiKey, price: modelPrice(baseUrl, config) })
}

const NAMED = 10

/** Contract: kernel-1.md 2 */
function skillHealth(directory: string, { failures }: SkillFiles): HealthCheck {
  if (failures.length === 0) return { status: 'ok' }
  const names = failures.slice(0, NAMED).map(({ file }) => relative(directory, file))
  const more = failures.length > NAMED ? ` and ${failures.length - NAMED} more` : ''
  return { status: 'degraded', detail: `skills that cannot be used: ${names.join(', ')}${more}` }
}

const distinct = (scopes: readonly Scope[]): Scope[] => [
  ...new Map(scopes.map((scope) => [JSON.stringify([scope.kind, scope.id]), scope])).values(),
]

/** Whoever reaches the kernel approves: that must be nobody but who is at this machine. @throws ConfigError */
function requireLoopback({ kernel: { api }, server }: Config): void {
  const addr = [server.addr, api.listenAddr].find((one) => one !== '' && !bindsLoopback(one))
  if (addr === undefined) return
  throw new ConfigError('--standalone-operator', `--standalone-operator needs a loopback address, not ${addr}`)
}

async function openStore({ kernel: { storage } }: Config, clock: Clock): Promise<KernelStore> {
  const [key, place] = storage.driver === 'sqlite' ? ['path', storage.path] : ['dsn', maskPassword(storage.dsn)]
  try {
    return storage.driver === 'sqlite'
      ? await newSqliteStore(storage.path, { clock })
      : await newPostgresStore(storage.dsn, { schema: storage.schema, clock })
  } catch (error) {
    throw new ConfigError(
      `kernel.storage.${key}`,
      `kernel.storage.${key} ${place} cannot be used: ${maskPassword(errorText(error))}`,
    )
  }
}
