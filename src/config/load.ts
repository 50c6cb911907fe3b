import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isMap } from '../base/json.ts'
import { resolveStores, type Stores } from './dsn.ts'
import { ConfigError } from './errors.ts'
import { findFile, readConfigFile } from './file.ts'
import { resolveKernel, type KernelConfig } from './kernel.ts'
import { readKeyFile } from './key-file.ts'
import { parseValues } from './parse.ts'
import { readS3, requireS3, type S3Config } from './s3.ts'
import type { Values } from './schema.ts'
import { fromEnvironment, fromFlags, type Given } from './sources.ts'

/** How to reach a model provider, as its variables say. Contract: memory.md 6.1. */
export interface Provider {
  api_key?: string
  base_url?: string
}

export interface Providers {
  openai: Provider
  voyage: Provider
  gemini: Provider
}

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

/** All that mem.yaml, the environment and the flags say: `config.server.addr`, ... Frozen; durations in ms. */
export type Config = Frozen<
  Omit<Values, 'embedding' | 'platform' | 'kernel'> & {
    /** `api_key` and `base_url` are the server model's; `providers` are those of workspaces' own models. */
    embedding: Values['embedding'] & { providers: Providers }
    platform: Values['platform'] & { key_file: string }
    kernel: KernelConfig
    /** The key callers must bring, from `server.api_key` or the key file; undefined when there is none. */
    apiKey: string | undefined
    stores: Stores
    /** Of the content driver s3. */
    s3: S3Config
    /** The file that was read. */
    file: string | undefined
  }
>

export interface Sources {
  /** By name without dashes: `{ 'data-dir': '/data', 'mcp-enable': true }`. */
  flags?: Readonly<Record<string, unknown>>
  env: Readonly<Record<string, string | undefined>>
  cwd?: string
}

/** Reads the configuration: defaults < file < environment < flags. Contract: memory.md 10.
 *  @throws ConfigError for whatever cannot be used. */
export function loadConfig({ flags = {}, env, cwd = process.cwd() }: Sources): Config {
  const home = env['HOME'] ?? homedir()
  const flag = typeof flags['config'] === 'string' ? expand(flags['config'], home) : undefined
  const variable = env['MEM_CONFIG'] ? expand(env['MEM_CONFIG'], home) : undefined
  const file = findFile({ variable, flag, home, cwd })
  const given = [...fromEnvironment(env), ...fromFlags(flags)]
  const tree = expandAll(overlay(file === undefined ? {} : readConfigFile(file), given), home)
  const values = parseValues(tree, (key) => given.findLast((each) => each.key === key)?.from ?? file ?? 'default')
  const stores = resolveStores(values.storage, cwd)
  const s3 = readS3(env)
  if (stores.content?.driver === 's3') requireS3(s3)
  return freeze({
    ...values,
    embedding: withProviders(values.embedding, env),
    platform: withKeyFile(values, cwd),
    kernel: resolveKernel(values, { flags, env, cwd, file }),
    apiKey: chooseKey(values.server),
    stores,
    s3,
    file,
  })
}

/** The file's values with the given ones over them, the last winning; what is no section stays, to be refused. */
function overlay(tree: Record<string, unknown>, given: readonly Given[]): Record<string, unknown> {
  for (const { key, value } of given) {
    place(tree, key.split('.'), value)
  }
  return tree
}

function place(tree: Record<string, unknown>, [name = '', ...below]: readonly string[], value: unknown): void {
  const before = tree[name] ?? {}
  if (below.length === 0) tree[name] = value
  else if (isMap(before)) {
    const changed = { ...before }
    place(changed, below, value)
    tree[name] = changed
  }
}

const expand = (text: string, home: string): string =>
  text.replace(/^(local:)?~(?=\/)/, (_, model = '') => model + home)

const expandAll = (map: Record<string, unknown>, home: string): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(map).map(([key, value]) => [
      key,
      typeof value === 'string' ? expand(value, home) : isMap(value) ? expandAll(value, home) : value,
    ]),
  )

function chooseKey({ api_key, api_key_file }: Values['server']): string | undefined {
  if (api_key !== undefined && api_key_file !== undefined) {
    throw new ConfigError(
      'server.api_key',
      'server.api_key (also as MEM_API_KEY or --api-key) and server.api_key_file are both set; keep one',
    )
  }
  const [from, key] =
    api_key_file === undefined ? ['server.api_key', api_key] : ['server.api_key_file', readKeyFile(api_key_file)]
  if (key === undefined || /^[\x21-\x7e]*$/.test(key)) return key
  throw new ConfigError(
    from,
    `${from} holds a key with white space, control or non-ASCII characters, which no header can carry; take one without, as of: openssl rand -hex 32`,
  )
}

const withKeyFile = ({ platform, storage }: Values, cwd: string): Config['platform'] => ({
  ...platform,
  key_file: resolve(cwd, platform.key_file ?? join(storage.data_dir, 'platform.key')),
})

/** The variables stand over the file, also for the server model; a workspace's model has only them. */
function withProviders(embedding: Values['embedding'], env: Sources['env']): Config['embedding'] {
  const variables = (key: string, url?: string): Provider => ({
    ...(env[key] && { api_key: env[key] }),
    ...(url !== undefined && env[url] && { base_url: env[url] }),
  })
  const providers: Providers = {
    openai: variables('OPENAI_API_KEY', 'OPENAI_BASE_URL'),
    voyage: variables('VOYAGE_API_KEY'),
    gemini: variables('GEMINI_API_KEY'),
  }
  const [name = ''] = embedding.model.split(':')
  const own = Object.entries(providers).find(([provider]) => provider === name)?.[1]
  return { ...embedding, ...own, providers }
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  Object.values(value).forEach(freeze)
  return Object.freeze(value)
}
