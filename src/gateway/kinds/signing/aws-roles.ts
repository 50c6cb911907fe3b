import { readFile } from 'node:fs/promises'
import type { Dispatcher } from '../../outbound/dispatcher.ts'
import { z } from 'zod'
import { jsonOf } from '../../../base/json.ts'
import { UpstreamAuthError } from '../upstream.ts'
import { fixedCall, refusal, type FixedAnswer, type FixedCall } from './fixed-call.ts'
import { Renewals, type Lease, type RenewalParts, type Renewed } from './renewed.ts'
import { AwsClock, AwsSigner, type AwsKeys } from './sigv4.ts'

export interface AwsRoleParts extends RenewalParts {
  readonly dispatcher: () => Dispatcher
  /** The variables of the process that AWS's own programs read: `AWS_WEB_IDENTITY_TOKEN_FILE` and so on. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** As containers and machines tell their keys. */
const told = z.looseObject({
  AccessKeyId: z.string(),
  SecretAccessKey: z.string(),
  Token: z.string(),
  Expiration: z.string(),
})

const INSTANCE = 'http://169.254.169.254'
const CONTAINER = 'http://169.254.170.2'

/**
 * Keys of the role that this process runs under (web identity, container endpoint, instance metadata v2, the first that
 * is set up), and of the roles it may assume. Contract: gateway.md 5.2.
 */
export class AwsRoles {
  readonly #parts: AwsRoleParts
  readonly #renewals: Renewals<AwsKeys>
  readonly #clock: AwsClock

  constructor(parts: AwsRoleParts) {
    this.#parts = parts
    this.#renewals = new Renewals(parts)
    this.#clock = new AwsClock(parts.clock)
  }

  /** Obtaining throws UpstreamAuthError when there is no role, or it is refused. */
  ofProcess(region: string): Renewed<AwsKeys> {
    return this.#renewals.of(region, 'keys of the role of this process', () => this.#own(region))
  }

  /** @param session names who asks, in the audit of the role's owner */
  assumed(region: string, roleArn: string, session: string): Renewed<AwsKeys> {
    const key = [region, roleArn, session].join(' ')
    return this.#renewals.of(key, `keys of ${roleArn}`, async () => {
      const own = await this.ofProcess(region).get()
      const form = { Action: 'AssumeRole', RoleArn: roleArn, RoleSessionName: session, DurationSeconds: '3600' }
      return this.#assume(region, form, own)
    })
  }

  #own(region: string): Promise<Lease<AwsKeys>> {
    const tokenFile = this.#variable('AWS_WEB_IDENTITY_TOKEN_FILE')
    const roleArn = this.#variable('AWS_ROLE_ARN')
    if (tokenFile !== undefined && roleArn !== undefined) return this.#byWebIdentity(region, tokenFile, roleArn)
    const relative = this.#variable('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI')
    const container =
      relative === undefined ? this.#variable('AWS_CONTAINER_CREDENTIALS_FULL_URI') : CONTAINER + relative
    return container === undefined ? this.#byInstance() : this.#byContainer(container)
  }

  async #byWebIdentity(region: string, tokenFile: string, roleArn: string): Promise<Lease<AwsKeys>> {
    const token = await secretIn(tokenFile)
    const session = this.#variable('AWS_ROLE_SESSION_NAME') ?? 'mem-gateway'
    const form = { Action: 'AssumeRoleWithWebIdentity', RoleArn: roleArn, RoleSessionName: session }
    return this.#assume(region, { ...form, WebIdentityToken: token }, undefined)
  }

  async #byContainer(url: string): Promise<Lease<AwsKeys>> {
    const file = this.#variable('AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE')
    const token = file === undefined ? this.#variable('AWS_CONTAINER_AUTHORIZATION_TOKEN') : await secretIn(file)
    const answer = await this.#call(url, token === undefined ? {} : { headers: ['authorization', token] })
    return keysTold('the container endpoint', answer)
  }

  async #byInstance(): Promise<Lease<AwsKeys>> {
    if (this.#variable('AWS_EC2_METADATA_DISABLED')?.toLowerCase() === 'true') throw noRole()
    const base = (this.#variable('AWS_EC2_METADATA_SERVICE_ENDPOINT') ?? INSTANCE).replace(/\/+$/, '')
    const call = (path: string, options: FixedCall): Promise<FixedAnswer> =>
      this.#call(`${base}/latest/${path}`, options).catch((error: unknown) => {
        throw noRole(error)
      })
    const session = await call('api/token', {
      method: 'PUT',
      headers: ['x-aws-ec2-metadata-token-ttl-seconds', '21600'],
    })
    if (session.status !== 200) throw refusal('instance metadata', session.status, undefined)
    const headers = ['x-aws-ec2-metadata-token', session.text.trim()]
    const list = await call('meta-data/iam/security-credentials/', { headers })
    const [role = ''] = list.text.trim().split('\n')
    if (list.status === 404 || role === '') throw noRole()
    if (list.status !== 200) throw refusal('instance metadata', list.status, undefined)
    const keys = await call(`meta-data/iam/security-credentials/${encodeURIComponent(role)}`, { headers })
    return keysTold('instance metadata', keys)
  }

  /** Asks STS, signed with `keys` if any; once more when it tells that the clocks differ. */
  async #assume(region: string, form: Record<string, string>, keys: AwsKeys | undefined): Promise<Lease<AwsKeys>> {
    const base = this.#variable('AWS_ENDPOINT_URL_STS') ?? `https://sts.${region}.amazonaws.com`
    const url = base.replace(/\/*$/, '/')
    const { host, pathname: path } = new URL(url)
    const signer = new AwsSigner('sts', region, this.#clock)
    const body = new URLSearchParams({ Version: '2011-06-15', ...form }).toString()
    let signed: string[] = []
    const send = async (): Promise<FixedAnswer> => {
      signed = keys ? signer.sign({ host, path, body }, keys) : []
      const headers = ['content-type', 'application/x-www-form-urlencoded', ...signed]
      return this.#call(url, { method: 'POST', headers, body })
    }
    let answer = await send()
    const isSkewed = this.#clock.learn(answer.status, String(answer.headers['date']), answer.text, signed)
    if (isSkewed) answer = await send()
    return keysAssumed(answer)
  }

  /** Set to nothing is not set. */
  #variable(name: string): string | undefined {
    const value = this.#parts.environment[name]
    return value === '' ? undefined : value
  }

  #call(url: string, call: FixedCall): Promise<FixedAnswer> {
    return fixedCall(this.#parts.dispatcher(), url, call)
  }
}

const noRole = (cause?: unknown): UpstreamAuthError =>
  new UpstreamAuthError('this process has no role: neither web identity, container endpoint nor instance metadata', {
    cause,
  })

const secretIn = async (file: string): Promise<string> => {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw new UpstreamAuthError(`the token file ${file} cannot be read`, { cause: error })
  }
}

function keysTold(what: string, { status, text }: FixedAnswer): Lease<AwsKeys> {
  if (status !== 200) throw refusal(what, status, undefined)
  const { data } = told.safeParse(jsonOf(text))
  if (!data) throw new UpstreamAuthError(`${what} gives no keys`)
  const value = { accessKeyId: data.AccessKeyId, secretAccessKey: data.SecretAccessKey, sessionToken: data.Token }
  return { value, endsAt: endOf(data.Expiration) }
}

/** STS answers in XML of fixed elements without attributes; keys hold nothing that XML would escape. */
function keysAssumed({ status, text }: FixedAnswer): Lease<AwsKeys> {
  const element = (name: string): string | undefined => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1]?.trim()
  if (status !== 200) {
    throw refusal('STS', status, [element('Code'), element('Message')].filter(Boolean).join(', ') || undefined)
  }
  const [accessKeyId, secretAccessKey] = [element('AccessKeyId'), element('SecretAccessKey')]
  const [sessionToken, expiration] = [element('SessionToken'), element('Expiration')]
  if (accessKeyId === undefined || secretAccessKey === undefined || expiration === undefined) {
    throw new UpstreamAuthError('STS gives no keys')
  }
  return { value: { accessKeyId, secretAccessKey, sessionToken }, endsAt: endOf(expiration) }
}

function endOf(expiration: string): number {
  const ms = Date.parse(expiration)
  if (Number.isNaN(ms)) throw new UpstreamAuthError('the keys of a role tell no end')
  return ms
}
