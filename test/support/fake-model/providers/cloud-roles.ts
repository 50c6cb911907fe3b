import { jsonReply, Refusal, type Failure, type ReceivedCall, type Reply } from '../wire.ts'
import { AWS_REGION, mintedSecret, mintedToken, verifySignature } from './aws.ts'
import type { Clock, Provider } from './provider.ts'

export const CONTAINER_TOKEN = 'fake-container-token'
export const CONTAINER_PATH = '/v2/credentials/fake'
export const WEB_IDENTITY_TOKEN = 'fake.web.identity'
export const INSTANCE_ROLE = 'fake-instance-role'
export const ROLE_ARN = 'arn:aws:iam::123456789012:role/models'

const IMDS_TOKEN = 'fake-imds-token'
const HOUR_MS = 3_600_000
const STATUSES: Partial<Record<Failure, number>> = {
  auth: 401,
  permission: 403,
  missing: 404,
  rate: 429,
  server: 500,
  overloaded: 503,
}

/** STS, the credentials of a container, and the metadata of an instance (IMDSv2; Google's too). */
export function cloudRoles(clock: Clock): Provider {
  let minted = 0
  const mint = (): { id: string; secret: string; token: string; expiration: string } => {
    const id = `ASIAFAKE${String(++minted).padStart(12, '0')}`
    const expires = clock.now() + HOUR_MS
    return {
      id,
      secret: mintedSecret(id),
      token: mintedToken(id, expires),
      expiration: new Date(expires).toISOString(),
    }
  }
  const keys = (): Reply => {
    const { id, secret, token, expiration } = mint()
    return jsonReply({
      Code: 'Success',
      Type: 'AWS-HMAC',
      LastUpdated: new Date(clock.now()).toISOString(),
      AccessKeyId: id,
      SecretAccessKey: secret,
      Token: token,
      Expiration: expiration,
    })
  }
  const sts = (call: ReceivedCall): Reply => {
    const form = new URLSearchParams(call.method === 'POST' ? call.raw.toString() : call.query)
    const action = form.get('Action') ?? ''
    if (form.get('Version') !== '2011-06-15')
      throw new Refusal('invalid', 'Could not find operation', { type: 'InvalidAction' })
    if (form.get('RoleArn') !== ROLE_ARN)
      throw new Refusal('permission', 'Not authorized to perform sts:AssumeRole', { type: 'AccessDenied' })
    if (!/^[\w+=,.@-]{2,64}$/.test(form.get('RoleSessionName') ?? ''))
      throw new Refusal('invalid', 'RoleSessionName', { type: 'ValidationError' })
    if (action === 'AssumeRole') verifySignature(call, 'sts', clock.now())
    else if (action !== 'AssumeRoleWithWebIdentity')
      throw new Refusal('invalid', `${action} is no action`, { type: 'InvalidAction' })
    else if (form.get('WebIdentityToken') !== WEB_IDENTITY_TOKEN) {
      throw new Refusal('invalid', 'The web identity token is not valid', { type: 'InvalidIdentityToken' })
    }
    const { id, secret, token, expiration } = mint()
    const credentials = `<Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${token}</SessionToken><Expiration>${expiration}</Expiration></Credentials>`
    const user = `<AssumedRoleUser><Arn>${ROLE_ARN}/fake</Arn><AssumedRoleId>AROAFAKE:fake</AssumedRoleId></AssumedRoleUser>`
    return xml(
      `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result>${user}${credentials}</${action}Result><ResponseMetadata><RequestId>fake</RequestId></ResponseMetadata></${action}Response>`,
    )
  }
  const instance = ({ method, path, headers }: ReceivedCall): Reply | undefined => {
    if (path === '/latest/api/token') {
      if (method !== 'PUT' || headers['x-aws-ec2-metadata-token-ttl-seconds'] === undefined)
        throw new Refusal('invalid', 'Bad Request')
      return { status: 200, contentType: 'text/plain', frames: [{ bytes: Buffer.from(IMDS_TOKEN) }] }
    }
    const base = '/latest/meta-data/iam/security-credentials/'
    if (!path.startsWith(base)) return undefined
    if (headers['x-aws-ec2-metadata-token'] !== IMDS_TOKEN) throw new Refusal('auth', 'Unauthorized')
    if (path === `${base}${INSTANCE_ROLE}`) return keys()
    return { status: 200, contentType: 'text/plain', frames: [{ bytes: Buffer.from(INSTANCE_ROLE) }] }
  }
  return {
    credential: () => ({ config: { region: AWS_REGION, use_runtime_role: true, role_arn: ROLE_ARN } }),
    exchanges: () => minted,
    aside: () => undefined,
    answer: (call) => {
      const { path, headers } = call
      if (path === CONTAINER_PATH) {
        if (headers['authorization'] !== CONTAINER_TOKEN) throw new Refusal('auth', 'Unauthorized')
        return keys()
      }
      if (path === '/') return sts(call)
      const found = instance(call)
      if (found) return found
      if (path !== '/computeMetadata/v1/instance/service-accounts/default/token')
        throw new Refusal('missing', 'Not Found')
      if (headers['metadata-flavor'] !== 'Google')
        throw new Refusal('permission', 'Missing Metadata-Flavor:Google header.')
      minted++
      return {
        ...jsonReply({ access_token: `ya29.fake-${minted}`, expires_in: 3599, token_type: 'Bearer' }),
        headers: { 'metadata-flavor': 'Google' },
      }
    },
    refuse: ({ failure, message, details }, { path }) => {
      const status = STATUSES[failure] ?? 400
      if (path !== '/') return jsonReply({ code: failure, message }, undefined, details.status ?? status)
      const body = `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${details.type ?? 'AccessDenied'}</Code><Message>${message}</Message></Error><RequestId>fake</RequestId></ErrorResponse>`
      return { ...xml(body), status: details.status ?? status }
    },
    errorFrame: () => ({ bytes: Buffer.alloc(0) }),
  }
}

const xml = (text: string): Reply => ({ status: 200, contentType: 'text/xml', frames: [{ bytes: Buffer.from(text) }] })
