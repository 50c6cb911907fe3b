import { join, resolve } from 'node:path'
import * as z from 'zod'
import { ConfigError } from './errors.ts'
import type { Sources } from './load.ts'
import type { Values } from './schema.ts'
import { count, text } from './values.ts'

/** The section `kernel`. Contract: kernel-2.md 16. */

const scope = z.strictObject({ kind: text(), id: text() })

export const kernel = z.strictObject({
  api: z.strictObject({ listenAddr: z.string().default('') }).prefault({}),
  storage: z
    .strictObject({
      driver: z.enum(['sqlite', 'postgres']).default('sqlite'),
      path: text().default('kernel.db'),
      dsn: z.string().default(''),
      schema: z
        .string()
        .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'must be a lower-case identifier of 63 characters at most')
        .default('kernel'),
    })
    .prefault({}),
  workers: z
    .strictObject({
      /** Else the scope of `--kernel-scope`; an empty list is no workers. */
      scopes: z.array(scope).optional(),
      limit: count(8, { min: 1, max: 256 }),
      runConcurrency: count(2, { min: 1, max: 256 }),
      actionConcurrency: count(2, { min: 1, max: 256 }),
    })
    .prefault({}),
  model: z
    .strictObject({ baseUrl: z.string().default(''), name: z.string().default(''), apiKeyEnv: z.string().default('') })
    .prefault({}),
  registry: z.strictObject({ skillsDir: text().default('skills') }).prefault({}),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
})

type Scope = z.output<typeof scope>
type KernelValues = z.output<typeof kernel>

/** Which model proposes turns, and how it is reached. */
export interface KernelModel {
  baseUrl: string
  name: string
  apiKey: string
}

export interface KernelConfig {
  /** An own listener; else, where it is empty, the one of all services. */
  api: { listenAddr: string }
  /** Of KERNEL_API_TOKEN; else the server's key guards the kernel. */
  token: string | undefined
  storage: { driver: 'sqlite'; path: string } | { driver: 'postgres'; dsn: string; schema: string }
  /** Of requests that say no other. */
  scope: Scope
  workers: Omit<KernelValues['workers'], 'scopes'> & { scopes: Scope[] }
  /** Without one, runs stay queued. */
  model: KernelModel | undefined
  registry: { skillsDir: string }
  /** With the credentials of its scopes; it may be missing. */
  contextFile: string
  /** The person at this machine approves and administers. */
  standaloneOperator: boolean
  logLevel: KernelValues['logLevel']
}

/** @throws ConfigError naming the key, flag or variable that cannot be used */
export function resolveKernel(
  { kernel: given, storage: { data_dir: dataDir } }: Values,
  { flags = {}, env, cwd = process.cwd(), file }: Sources & { file: string | undefined },
): KernelConfig {
  const { storage, workers, api } = given
  const inData = (path: string): string => resolve(cwd, dataDir, path)
  const ownScope = scopeOf(flags['kernel-scope'])
  const contextFlag = flags['kernel-context']
  const { dsn } = storage
  if (storage.driver === 'postgres' && dsn === '') {
    throw new ConfigError('kernel.storage.dsn', 'kernel.storage.dsn (or KERNEL_STORAGE_DSN) is required with postgres')
  }
  return {
    api,
    token: env['KERNEL_API_TOKEN'] === '' ? undefined : env['KERNEL_API_TOKEN'],
    storage:
      storage.driver === 'sqlite'
        ? { driver: 'sqlite', path: inData(storage.path) }
        : { driver: 'postgres', dsn, schema: storage.schema },
    scope: ownScope,
    workers: { ...workers, scopes: workers.scopes ?? [ownScope] },
    model: modelOf(given.model, env),
    registry: { skillsDir: inData(given.registry.skillsDir) },
    contextFile: resolve(
      cwd,
      typeof contextFlag === 'string' ? contextFlag : join(file === undefined ? '.' : join(file, '..'), CONTEXT_FILE),
    ),
    standaloneOperator: flags['standalone-operator'] === true,
    logLevel: given.logLevel,
  }
}

const CONTEXT_FILE = 'kernel-context.yaml'

function scopeOf(flag: unknown): Scope {
  const [, kind, id] = /^([^:]+):(.+)$/.exec(typeof flag === 'string' ? flag : 'local:default') ?? []
  if (kind === undefined || id === undefined) throw new ConfigError('--kernel-scope', '--kernel-scope must be kind:id')
  return { kind, id }
}

/** All three or none, of the variables as of the file; the variables win. */
function modelOf({ baseUrl, name, apiKeyEnv }: KernelValues['model'], env: Sources['env']): KernelModel | undefined {
  const named = completeModel('KERNEL_MODEL_BASE_URL, KERNEL_MODEL_NAME, KERNEL_MODEL_API_KEY', [
    env['KERNEL_MODEL_BASE_URL'],
    env['KERNEL_MODEL_NAME'],
    env['KERNEL_MODEL_API_KEY'],
  ])
  if (named) return named
  const filed = completeModel('kernel.model.baseUrl, .name, .apiKeyEnv', [baseUrl, name, apiKeyEnv])
  if (!filed) return undefined
  const apiKey = env[apiKeyEnv]
  if (!apiKey)
    throw new ConfigError('kernel.model.apiKeyEnv', `kernel.model.apiKeyEnv names ${apiKeyEnv}, which is empty`)
  return { ...filed, apiKey }
}

function completeModel(what: string, [baseUrl, name, apiKey]: (string | undefined)[]): KernelModel | undefined {
  if (!baseUrl && !name && !apiKey) return undefined
  if (!baseUrl || !name || !apiKey) throw new ConfigError('kernel.model', `${what} must all be set, or none`)
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new ConfigError('kernel.model.baseUrl', `the address of the kernel's model must be an http or https URL`)
  }
  return { baseUrl, name, apiKey }
}
