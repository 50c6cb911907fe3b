import { dirname, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import { planSecrets } from '../../gateway/credential-secrets.ts'
import { KINDS, type Alias, type Credential } from '../../gateway/model.ts'
import { SECRETS } from '../../gateway/requests/config.ts'
import { credentialRequest } from '../../gateway/requests/credential.ts'
import { scope } from '../../gateway/requests/fields.ts'
import { describeFault } from '../../http/validation.ts'
import { RestError } from '../../platform/errors.ts'
import type { Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { readSecretFile } from '../input.ts'
import { HINTS } from '../platform/rest.ts'
import { configSecrets, readSecretVariable } from './secrets.ts'

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
  const read = (place: string, names: readonly string[], from: Body): Promise<Body> =>
    withSecrets(io, directory, names, from, `${entry.name}: ${place}`)
  const body = await read('', ['api_key'], fields)
  const whole = { ...body, config: await read('config.', configSecrets(entry.provider), config) }
  const checked = credentialRequest.safeParse(whole)
  if (checked.success) return whole
  throw new CliError(EXIT.failure, `${entry.name}: ${describeFault(checked.error, whole).message}`)
}

/** @param where the entry, and the place in it, that a refusal names */
async function withSecrets(
  io: Io,
  directory: string,
  names: readonly string[],
  fields: Body,
  where: string,
): Promise<Body> {
  const read: Body = { ...fields }
  for (const name of names) {
    const ways = [name, `${name}_env`, `${name}_file`].filter((way) => way in fields)
    if (ways.length > 1) throw usageError(`${where}${ways.join(' and ')} exclude each other`, 'Keep one of them.')
    const variable = sourceOf(fields, `${name}_env`, where, 'the name of an environment variable')
    const file = sourceOf(fields, `${name}_file`, where, 'the path of a file')
    delete read[`${name}_env`]
    delete read[`${name}_file`]
    if (variable !== undefined) read[name] = readSecretVariable(io, variable)
    else if (file !== undefined) read[name] = await readSecretFile(io, resolve(directory, file))
  }
  return read
}

/** Where a secret is read from. @throws CliError (usage) for what names nothing: its credential would be made without a key */
function sourceOf(fields: Body, way: string, where: string, what: string): string | undefined {
  const { [way]: source } = fields
  if (!(way in fields)) return undefined
  if (typeof source === 'string' && source !== '') return source
  throw usageError(`${where}${way} must be ${what}`, 'Write it there, or leave the field out.')
}

/**
 * What makes of the credentials that are there those of the file.
 * @param prune removes shared ones that the file does not name
 * @throws CliError for a change that the server would refuse, before any other is carried out
 */
export function planOf(bodies: readonly Body[], there: readonly Credential[], prune: boolean): Step[] {
  const used = new Set<number>()
  const steps = bodies.map((body): Step => {
    const name = String(body['name'])
    const old = there.find((each) => each.scope === body['scope'] && each.name.toLowerCase() === name.toLowerCase())
    if (!old) return { action: 'create', name, body }
    used.add(old.id)
    refuseChange(body, old)
    const isSame = isDeepStrictEqual(shapeOf(body), shapeOfSaved(old))
    if (isSame && !holdsSecrets(body)) return { action: 'unchanged', name, id: old.id }
    const sent = { name, id: old.id, body: { ...body, version: old.version } }
    return isSame ? { action: 'unchanged', isUncertain: true, ...sent } : { action: 'update', ...sent }
  })
  const rest = prune ? there.filter((each) => each.scope === 'organization' && !used.has(each.id)) : []
  return [...steps, ...rest.map(({ id, name }): Step => ({ action: 'remove', name, id }))]
}

/** @throws CliError for another provider, or another address without the saved secrets anew */
function refuseChange(body: Body, old: Credential): void {
  const { name, provider, config = {}, custom_headers: headers = {} } = old
  const request = credentialRequest.parse(body)
  if (request.provider !== provider) {
    const hint = 'Give the entry another name, or remove the saved credential first.'
    throw new CliError(EXIT.failure, `${name}: provider is ${provider} and stays so`, hint)
  }
  const fields = { ...old, config, headers: Object.keys(headers) }
  const { base_url: _, ...others } = fields
  const after = {
    ...others,
    ...(request.base_url !== undefined && { base_url: request.base_url }),
    config: request.config,
  }
  try {
    planSecrets(request, after, { fields, secret_names: savedSecrets(old) })
  } catch (error) {
    if (!(error instanceof RestError)) throw error
    throw new CliError(EXIT.failure, `${name}: ${error.message} (${error.code})`, HINTS[error.code])
  }
}

/** @throws CliError for a removal that groups stand in the way of; those of other users are not seen */
export function refuseInUse(steps: readonly Step[], groups: readonly Alias[]): void {
  for (const { action, name, id } of steps) {
    if (action !== 'remove') continue
    const users = groups.filter(({ members }) => members.some((member) => member.credential_id === id))
    if (users.length === 0) continue
    throw new CliError(
      EXIT.failure,
      `${name}: it is a member of ${users.map((group) => group.name).join(', ')}`,
      `Keep it in the list, or take it out of them: mem gateway credentials remove '${name}' --force`,
    )
  }
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
    api_key: _k,
    custom_headers: headers,
    ...fields
  } = credentialRequest.parse(body)
  const key = secrets.get('api_key') ?? ''
  return comparable({ ...fields, headers: Object.keys(headers), last4: key.length >= 12 ? key.slice(-4) : '' }, [
    ...secrets.keys(),
  ])
}

function shapeOfSaved(saved: Credential): object {
  const { provider, name, enabled, default_model, weight, priority, fallback_group, base_url } = saved
  const { model_mapping, allowed_models, limits, timeouts, custom_headers = {} } = saved
  const config = settingsOf(saved)
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
    savedSecrets(saved),
  )
}

const savedSecrets = ({ provider, has_api_key, config = {} }: Credential): string[] => [
  ...(has_api_key ? ['api_key'] : []),
  ...(SECRETS[provider] ?? []).filter((name) => config[`has_${name}`] === true),
]

/** What `config` holds beside the marks of saved secrets. */
const settingsOf = ({ config = {} }: Credential): Body =>
  Object.fromEntries(Object.entries(config).filter(([name]) => !name.startsWith('has_')))

/** Plain data without empty fields, whatever their order. */
const comparable = (fields: Body & { headers: string[] }, secrets: string[]): object =>
  JSON.parse(JSON.stringify({ ...fields, headers: fields.headers.sort(), secrets: secrets.sort() }))
