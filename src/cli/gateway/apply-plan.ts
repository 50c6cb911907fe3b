import { dirname, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import { KINDS, type Credential, type Kind } from '../../gateway/model.ts'
import { SECRETS } from '../../gateway/requests/config.ts'
import { credentialRequest } from '../../gateway/requests/credential.ts'
import { scope } from '../../gateway/requests/fields.ts'
import { describeFault } from '../../http/validation.ts'
import type { Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { readSecretFile } from '../input.ts'
import { readSecretVariable } from './secrets.ts'

/** What is to be done about one credential. */
export interface Step {
  readonly action: 'create' | 'update' | 'unchanged' | 'remove'
  /** Looks unchanged, but only the server can tell whether its secrets are those that are saved. */
  readonly isUncertain?: boolean
  readonly name: string
  /** Of one that exists. */
  readonly id?: number
  /** What is sent. */
  readonly body?: Record<string, unknown>
}

type Body = Record<string, unknown>

const entries = z.array(
  z.looseObject({
    name: z.string(),
    provider: z.enum(KINDS),
    scope: scope.default('organization'),
    config: z.record(z.string(), z.unknown()).optional(),
  }),
)
type Entry = z.infer<typeof entries>[number]

/** The requests of a file, their secrets read; files lie beside it. @throws CliError that names the entry at fault */
export async function readEntries(io: Io, file: string, value: unknown): Promise<Body[]> {
  const read = entries.safeParse(value)
  if (!read.success) {
    throw usageError(`${file}: ${describeFault(read.error, value).message}`, 'It is to be a list of credentials.')
  }
  const names = read.data.map((each) => `${each.scope} ${each.name.toLowerCase()}`)
  const twice = read.data.find((_, i) => names.indexOf(names[i] ?? '') !== i)
  if (twice) throw usageError(`${file}: the name '${twice.name}' stands there twice`)
  const bodies: Body[] = []
  for (const entry of read.data) bodies.push(await requestOf(io, dirname(file), entry))
  return bodies
}

/** `<secret>_env` and `<secret>_file` become the secret. */
async function requestOf(io: Io, directory: string, entry: Entry): Promise<Body> {
  const { config = {}, ...fields } = entry
  const body = await withSecrets(io, directory, ['api_key'], fields)
  const whole = { ...body, config: await withSecrets(io, directory, SECRETS[entry.provider] ?? [], config) }
  const checked = credentialRequest.safeParse(whole)
  if (checked.success) return whole
  throw new CliError(EXIT.failure, `${entry.name}: ${describeFault(checked.error, whole).message}`)
}

async function withSecrets(io: Io, directory: string, names: readonly string[], fields: Body): Promise<Body> {
  const read: Body = { ...fields }
  for (const name of names) {
    const { [`${name}_env`]: variable, [`${name}_file`]: file } = read
    delete read[`${name}_env`]
    delete read[`${name}_file`]
    if (typeof variable === 'string') read[name] = readSecretVariable(io, variable)
    else if (typeof file === 'string') read[name] = await readSecretFile(io, resolve(directory, file))
  }
  return read
}

/**
 * What makes of the credentials that are there those of the file.
 * @param prune removes shared ones that the file does not name
 */
export function planOf(bodies: readonly Body[], there: readonly Credential[], prune: boolean): Step[] {
  const used = new Set<number>()
  const steps = bodies.map((body): Step => {
    const name = String(body['name'])
    const old = there.find((each) => each.scope === body['scope'] && each.name.toLowerCase() === name.toLowerCase())
    if (!old) return { action: 'create', name, body }
    used.add(old.id)
    const isSame = isDeepStrictEqual(shapeOf(body), shapeOfSaved(old))
    if (isSame && !holdsSecrets(body)) return { action: 'unchanged', name, id: old.id }
    const sent = { name, id: old.id, body: { ...body, version: old.version } }
    return isSame ? { action: 'unchanged', isUncertain: true, ...sent } : { action: 'update', ...sent }
  })
  const rest = prune ? there.filter((each) => each.scope === 'organization' && !used.has(each.id)) : []
  return [...steps, ...rest.map(({ id, name }): Step => ({ action: 'remove', name, id }))]
}

function holdsSecrets(body: Body): boolean {
  const { secrets, custom_headers: headers } = credentialRequest.parse(body)
  return secrets.size > 0 || Object.keys(headers).length > 0
}

/** What can be compared: of secrets that they are there, and of a key its end. */
function shapeOf(body: Body): object {
  const {
    secrets,
    scope: _,
    version: _v,
    api_key: key = '',
    custom_headers: headers,
    ...fields
  } = credentialRequest.parse(body)
  return comparable({ ...fields, headers: Object.keys(headers), last4: key.length >= 12 ? key.slice(-4) : '' }, [
    ...secrets.keys(),
  ])
}

function shapeOfSaved(saved: Credential): object {
  const { provider, name, enabled, default_model, weight, priority, fallback_group, base_url } = saved
  const { model_mapping, allowed_models, limits, timeouts, custom_headers = {} } = saved
  const { config, names } = apart(provider, saved.config ?? {})
  const fields = { provider, name, enabled, default_model, weight, priority, fallback_group, base_url, config }
  return comparable(
    {
      ...fields,
      model_mapping,
      allowed_models,
      limits,
      timeouts,
      headers: Object.keys(custom_headers),
      last4: saved.api_key_last4 ?? '',
    },
    [...(saved.has_api_key ? ['api_key'] : []), ...names],
  )
}

/** Settings, and the names of the secrets that are saved. */
function apart(kind: Kind, config: Body): { config: Body; names: string[] } {
  const names = (SECRETS[kind] ?? []).filter((name) => config[`has_${name}`] === true)
  const plain = Object.entries(config).filter(([name]) => !name.startsWith('has_'))
  return { config: Object.fromEntries(plain), names }
}

/** Plain data without empty fields, whatever their order. */
const comparable = (fields: Body & { headers: string[] }, secrets: string[]): object =>
  JSON.parse(JSON.stringify({ ...fields, headers: fields.headers.sort(), secrets: secrets.sort() }))
