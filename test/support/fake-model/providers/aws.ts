import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { Refusal, type Frame, type Json, type ReceivedCall, type Usage } from '../wire.ts'

export const AWS_REGION = 'eu-central-1'
export const AWS_KEY_ID = 'AKIAFAKE0123456789AB'
export const AWS_SECRET = 'fake/secret+0123456789abcdefghijklmnopqrs'

/** What was minted for a role carries its end in its token; the secret follows from the id. */
export const mintedSecret = (id: string): string =>
  createHash('sha256').update(`minted ${id}`).digest('base64').slice(0, 40)
export const mintedToken = (id: string, expires: number): string => `fake-session.${id}.${expires}`

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

/** RFC 3986, as AWS escapes. */
const escape = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)

const MAX_SKEW_MS = 5 * 60_000

const instant = (stamp: string): number =>
  Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
const stamp = (ms: number): string => new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '')

const refuse = (type: string, message: string): Refusal => new Refusal('permission', message, { type })

/** Recomputes the signature of a call. @throws Refusal as AWS words it */
export function verifySignature(call: ReceivedCall, service: string, now: number): void {
  const { headers } = call
  const { authorization = '' } = headers
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    )
  if (!match) throw refuse('MissingAuthenticationTokenException', 'Missing Authentication Token')
  const [, id = '', scope = '', names = '', signature = ''] = match
  const [date = '', region = '', named = '', end = ''] = scope.split('/')
  const at = headers['x-amz-date'] ?? ''
  if (named !== service || end !== 'aws4_request' || !at.startsWith(date)) {
    throw refuse('InvalidSignatureException', `Credential should be scoped to correct service: '${service}'.`)
  }
  const secret = secretOf(id, headers['x-amz-security-token'], now)
  if (Math.abs(instant(at) - now) > MAX_SKEW_MS) {
    const limit = stamp(now - MAX_SKEW_MS)
    throw refuse(
      'InvalidSignatureException',
      `Signature expired: ${at} is now earlier than ${limit} (${stamp(now)} - 5 min.)`,
    )
  }
  const signed = names.split(';')
  const unsigned = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))].find(
    (name) => !signed.includes(name),
  )
  if (unsigned !== undefined) throw refuse('InvalidSignatureException', `'${unsigned}' must be a signed header.`)
  const bodyHash = sha256(call.raw)
  const told = headers['x-amz-content-sha256'] ?? bodyHash
  if (told !== bodyHash) throw refuse('InvalidSignatureException', 'The provided x-amz-content-sha256 does not match.')
  const canonical = canonicalRequest(call, signed, told)
  const toSign = ['AWS4-HMAC-SHA256', at, scope, sha256(canonical)].join('\n')
  const key = [date, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`)
  if (timingSafeEqual(hmac(key, toSign), Buffer.from(signature, 'hex'))) return
  throw refuse(
    'InvalidSignatureException',
    `The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been '${canonical}'`,
  )
}

function secretOf(id: string, token: string | undefined, now: number): string {
  if (id === AWS_KEY_ID) return AWS_SECRET
  const [, minted, expires] = /^fake-session\.(\w+)\.(\d+)$/.exec(token ?? '') ?? []
  if (minted !== id)
    throw refuse('UnrecognizedClientException', 'The security token included in the request is invalid.')
  if (Number(expires) <= now) {
    throw refuse('ExpiredTokenException', 'The security token included in the request is expired')
  }
  return mintedSecret(id)
}

/** The path as it came, each part escaped once more. */
function canonicalRequest({ method, url, headers }: ReceivedCall, signed: readonly string[], bodyHash: string): string {
  const [path = '', query = ''] = url.split('?')
  const parameters = query
    .split('&')
    .filter((each) => each !== '')
    .map((each) => (each.includes('=') ? each : `${each}=`))
    .sort()
  return [
    method,
    path.split('/').map(escape).join('/'),
    parameters.join('&'),
    ...signed.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    signed.join(';'),
    bodyHash,
  ].join('\n')
}

/** A message of an event stream: lengths and their checksum, headers, payload, the checksum of all. */
export function eventMessage(
  headers: Readonly<Record<string, string>>,
  payload: Json,
  more: { usage?: Usage; isContent?: boolean } = {},
): Frame {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const size = Buffer.alloc(2)
      size.writeUInt16BE(Buffer.byteLength(value))
      return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), size, Buffer.from(value)])
    }),
  )
  const body = Buffer.from(JSON.stringify(payload))
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(16 + head.length + body.length, 0)
  prelude.writeUInt32BE(head.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const message = Buffer.concat([prelude, head, body])
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(message))
  return { bytes: Buffer.concat([message, sum]), ...more }
}
