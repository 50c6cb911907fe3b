import { KINDS, type Kind } from '../../gateway/model.ts'
import { secretField, secretsOf } from '../../gateway/requests/config.ts'
import { canAsk, input, secret, select } from '../ask.ts'
import type { Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { readSecretFile } from '../input.ts'

/** What a kind cannot do without, and what a person is asked for it. */
const REQUIRED: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  'azure-openai': ['endpoint'],
  bedrock: ['region'],
  vertex: ['project', 'location'],
}

export const askKind = async (io: Io, kind: Kind | undefined): Promise<Kind> =>
  kind ?? (canAsk(io) ? select(io, 'Provider', KINDS) : Promise.reject(missing('provider')))

export const askName = async (io: Io, name: string | undefined, kind: Kind): Promise<string> =>
  name ?? (canAsk(io) ? input(io, 'Name', kind) : Promise.reject(missing('name')))

/** Asks in a terminal for what the kind needs and nobody has given; elsewhere the server says what else is missing than the key. */
export async function askMissing(io: Io, kind: Kind, body: Record<string, unknown>): Promise<Record<string, unknown>> {
  const config: Record<string, unknown> = isRecord(body['config']) ? { ...body['config'] } : {}
  if (!canAsk(io)) {
    const isKeyless = secretsOf(kind, config).required.includes('api_key') && !hasKey(body, config)
    if (isKeyless && (REQUIRED[kind] ?? []).every((name) => name in config)) throw missing('api-key-file')
    return body
  }
  const asked = { ...body }
  if (kind === 'openai-compatible') asked['base_url'] ??= await input(io, 'Address, as https://host/v1', '')
  for (const name of REQUIRED[kind] ?? []) config[name] ??= await input(io, name, '')
  if (kind === 'bedrock' && !hasKey(asked, config) && config['use_runtime_role'] === undefined) {
    config['access_key_id'] ??= (await input(io, 'access_key_id (none: a bearer key)', '')) || undefined
  }
  const { required, optional } = secretsOf(kind, config)
  for (const name of [...required, ...optional]) {
    if (name === 'api_key' && hasKey(asked, config)) continue
    const place = name === 'api_key' ? asked : config
    place[name] ??= (await askSecret(io, name, optional.includes(name))) || undefined
  }
  return { ...asked, config }
}

/** Bedrock's may stand inside config. */
const hasKey = (body: Record<string, unknown>, config: Record<string, unknown>): boolean =>
  (body['api_key'] ?? config['api_key']) !== undefined

async function askSecret(io: Io, name: string, isOptional: boolean): Promise<string> {
  if (name !== 'service_account') return secret(io, `${secretField(name)}${isOptional ? ' (may be empty)' : ''}`)
  const file = await input(io, "File with the service account's JSON key", '')
  return file === '' ? '' : readSecretFile(io, file)
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const missing = (flag: string): Error => usageError(`--${flag} is required`, `In a terminal, it is asked for.`)
