import type { Credential, Kind } from '../../gateway/model.ts'
import type { Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { parsePairs } from '../input.ts'
import { distinctPairs, given, listOf, optionalNumber, withNumbers, withPairs } from './fields.ts'
import { configSecrets, readValue } from './secrets.ts'

/** A flag for each field that can be changed. Contract: gateway.md 2.1. */
export const CREDENTIAL_FLAGS = {
  'default-model': { value: 'model', help: 'The model this credential is preferred for' },
  weight: { value: 'n', help: 'Share of the traffic; 0 serves only as fallback (1)' },
  priority: { value: 'n', integer: true, help: 'Lower ones are tried first (0)' },
  'fallback-group': { value: 'name', help: 'Only members of it replace a pick' },
  enabled: { negatable: true, help: 'May be routed to' },
  'base-url': { value: 'url', help: "Instead of the provider's own address" },
  config: { value: 'k=v', repeat: true, help: 'Setting of the kind; `k=@file` reads a file, as secrets must' },
  header: { value: 'k=v', repeat: true, help: 'Header of every call; `k=@file` reads a file' },
  map: { value: 'a=b', repeat: true, help: 'Model a of clients is model b of the provider' },
  allow: { value: 'model', repeat: true, help: 'Serves only these; `*` may stand at the end' },
  limit: { value: 'k=n', repeat: true, help: 'requests_per_minute, tokens_per_minute, max_concurrency' },
  'time-limit': { value: 'k=ms', repeat: true, help: 'connect_ms, first_byte_ms, idle_ms, total_ms' },
} as const

export interface CredentialInput {
  'default-model': string | undefined
  weight: string | undefined
  priority: number | undefined
  'fallback-group': string | undefined
  enabled: boolean | undefined
  'base-url': string | undefined
  config: readonly string[]
  header: readonly string[]
  map: readonly string[]
  allow: readonly string[]
  limit: readonly string[]
  'time-limit': readonly string[]
}

const SWITCHES: ReadonlySet<string> = new Set(['use_runtime_role', 'stream_usage', 'responses'])
const NUMBERS: ReadonlySet<string> = new Set(['default_max_tokens'])
const LISTS: ReadonlySet<string> = new Set(['drop'])

/** The request that makes of a credential what the flags say; what no flag names stays as it is. */
export async function credentialBody(
  io: Io,
  kind: Kind,
  before: Partial<Credential>,
  input: CredentialInput,
): Promise<Record<string, unknown>> {
  const headers = await Promise.all(input.header.map((pair) => withFile(io, pair)))
  return given({
    provider: kind,
    version: before.version,
    default_model: input['default-model'] ?? before.default_model,
    weight: optionalNumber('weight', input.weight) ?? before.weight,
    priority: input.priority ?? before.priority,
    fallback_group: input['fallback-group'] ?? before.fallback_group,
    enabled: input.enabled ?? before.enabled,
    base_url: input['base-url'] ?? before.base_url,
    config: await configOf(io, kind, before.config ?? {}, input.config),
    custom_headers: withPairs('header', before.custom_headers ?? {}, headers, (_, text) => text),
    model_mapping: withPairs('map', before.model_mapping ?? {}, input.map, (_, text) => text),
    allowed_models: listOf(input.allow, before.allowed_models ?? [], (text) => text),
    limits: withNumbers('limit', { ...before.limits }, input.limit),
    timeouts: withNumbers('time-limit', { ...before.timeouts }, input['time-limit']),
  })
}

async function withFile(io: Io, pair: string): Promise<string> {
  const [[key, text] = ['', '']] = Object.entries(parsePairs('header', [pair]) ?? {})
  return `${key}=${await readValue(io, text)}`
}

/** Without the marks of saved secrets: who leaves a secret out keeps it. @throws CliError (usage) for a secret that is an argument */
async function configOf(
  io: Io,
  kind: Kind,
  before: Readonly<Record<string, unknown>>,
  pairs: readonly string[],
): Promise<Record<string, unknown>> {
  const config = Object.fromEntries(Object.entries(before).filter(([name]) => !name.startsWith('has_')))
  for (const [key, text] of distinctPairs('config', pairs)) {
    if (configSecrets(kind).includes(key) && text !== '' && !text.startsWith('@')) {
      throw usageError(`${key} is a secret, and arguments are no secret`, `Put it into a file: --config ${key}=@file`)
    }
    if (text === '') delete config[key]
    else config[key] = configValue(key, await readValue(io, text))
  }
  return config
}

function configValue(key: string, text: string): unknown {
  if (SWITCHES.has(key)) return text === 'true' ? true : text === 'false' ? false : text
  if (NUMBERS.has(key)) return optionalNumber(`config ${key}`, text)
  return LISTS.has(key) ? text.split(',').map((each) => each.trim()) : text
}
