import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AwsClock, AwsSigner, type AwsKeys } from '../../../src/gateway/kinds/signing/sigv4.ts'
import { call, credential, headersOf, upstreams } from './support.ts'

const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const sha = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex')

/** Signature Version 4 step by step, from its description: the oracle of these tests. */
function signature(request: {
  method: string
  path: string
  query?: string
  headers: Record<string, string>
  bodyHash: string
  secret: string
  date: string
  region: string
  service: string
}): string {
  const { method, path, query = '', headers, bodyHash, secret, date, region, service } = request
  const names = Object.keys(headers).sort()
  const canonical = [
    method,
    path,
    query,
    ...names.map((name) => `${name}:${headers[name]}`),
    '',
    names.join(';'),
    bodyHash,
  ].join('\n')
  const scope = `${date.slice(0, 8)}/${region}/${service}/aws4_request`
  const parts = [date.slice(0, 8), region, service, 'aws4_request']
  const key = parts.reduce<Buffer | string>((last, part) => hmac(last, part), `AWS4${secret}`)
  return hmac(Buffer.from(key), `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha(canonical)}`).toString('hex')
}

const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const KEYS: AwsKeys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET, sessionToken: undefined }
const AT = Date.parse('2015-08-30T12:36:00Z')

/** How the model in a path must be signed: what is on the wire, encoded once more. */
const twice = (path: string): string =>
  path.replace(/[^A-Za-z0-9\-._~/]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

describe('gateway#70 Signature Version 4', () => {
  test('the oracle gives the published signatures', () => {
    const vector = {
      secret: SECRET,
      date: '20150830T123600Z',
      region: 'us-east-1',
      service: 'service',
      bodyHash: sha(''),
    }
    const headers = { host: 'example.amazonaws.com', 'x-amz-date': '20150830T123600Z' }
    expect(signature({ ...vector, method: 'GET', path: '/', headers })).toBe(
      '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31', // get-vanilla
    )
    expect(signature({ ...vector, method: 'POST', path: '/', headers })).toBe(
      '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b', // post-vanilla
    )
    const query = 'Param1=value1&Param2=value2'
    expect(signature({ ...vector, method: 'GET', path: '/', query, headers })).toBe(
      'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500', // get-vanilla-query-order-key-case
    )
  })

  test('names are encoded once on the wire and once more to be signed; a session token is signed too', async () => {
    const segment = fc.oneof(
      fc.constantFrom(
        'anthropic.claude-3-5-sonnet-20241022-v2:0',
        'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123',
        "it's (a) *name*! + ~ %41",
      ),
      fc.string({ minLength: 1, maxLength: 40 }),
    )
    await fc.assert(
      fc.asyncProperty(
        segment,
        fc.option(fc.base64String({ minLength: 4 }), { nil: undefined }),
        async (model, token) => {
          fc.pre(!/^\.\.?$|(^|[/\\])\.\.?([/\\]|$)/.test(model))
          const upstream = upstreams({ clock: { now: () => AT } })(
            credential('bedrock', {
              config: { region: 'eu-west-1', access_key_id: 'AKIDEXAMPLE' },
              secrets: { secret_access_key: SECRET, ...(token !== undefined && { session_token: token }) },
              customHeaders: { 'x-team': 'unsigned' },
            }),
          )
          const body = Buffer.from('{"messages":[]}')
          const request = await upstream.request(call({ model, body }))
          const headers = headersOf(request)
          const signed = {
            host: 'bedrock-runtime.eu-west-1.amazonaws.com',
            'x-amz-content-sha256': sha(body),
            'x-amz-date': '20150830T123600Z',
            ...(token !== undefined && { 'x-amz-security-token': token }),
          }
          const { host: _, ...sent } = signed
          expect(headers).toMatchObject({ ...sent, 'x-team': 'unsigned' })
          const expected = signature({
            method: 'POST',
            path: twice(request.path),
            headers: signed,
            bodyHash: sha(body),
            secret: SECRET,
            date: '20150830T123600Z',
            region: 'eu-west-1',
            service: 'bedrock',
          })
          const scope = 'Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request'
          const names = `SignedHeaders=${Object.keys(signed).sort().join(';')}`
          expect(headers['authorization']).toBe(`AWS4-HMAC-SHA256 ${scope}, ${names}, Signature=${expected}`)
        },
      ),
    )
  })

  test('the path on the wire holds ids and ARNs encoded once', async () => {
    const upstream = upstreams()(
      credential('bedrock', {
        config: { region: 'us-east-1', access_key_id: 'A' },
        secrets: { secret_access_key: SECRET },
      }),
    )
    const { path } = await upstream.request(call({ model: 'us.anthropic.claude-v2:1', stream: true }))
    expect(path).toBe('/model/us.anthropic.claude-v2%3A1/converse-stream')
    const arn = 'arn:aws:bedrock:us-east-1:1:inference-profile/x'
    expect((await upstream.request(call({ model: arn }))).path).toBe(
      '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse',
    )
  })

  test('a refusal that tells another time corrects the clock, once', async () => {
    const upstream = upstreams({ clock: { now: () => AT } })(
      credential('bedrock', {
        config: { region: 'us-east-1', access_key_id: 'A' },
        secrets: { secret_access_key: SECRET },
      }),
    )
    const body = Buffer.from('{"message":"Signature expired: 20150830T123600Z is now earlier than 20150830T125100Z"}')
    const headers = { 'x-amzn-errortype': 'InvalidSignatureException:http://x/', date: 'Sun, 30 Aug 2015 12:56:00 GMT' }
    const refusal = { status: 403, headers, body }
    const denied = { ...headers, 'x-amzn-errortype': 'AccessDeniedException' }
    const early = await upstream.request(call())
    expect(headersOf(early)['x-amz-date']).toBe('20150830T123600Z')
    expect(upstream.learnSkew?.(early, { status: 403, headers: denied, body: Buffer.from('{}') })).toBe(false)
    expect(upstream.learnSkew?.(early, { ...refusal, status: 500 })).toBe(false)
    expect(upstream.learnSkew?.(early, refusal)).toBe(true)
    expect(upstream.learnSkew?.(early, refusal)).toBe(true) // signed before it was learnt
    const signed = await upstream.request(call())
    expect(headersOf(signed)['x-amz-date']).toBe('20150830T125600Z')
    expect(upstream.learnSkew?.(signed, refusal)).toBe(false) // the same time again: the keys are wrong, not the clock
  })

  test('a day and a key change make another signature', () => {
    let now = AT
    const signer = new AwsSigner('bedrock', 'us-east-1', new AwsClock({ now: () => now }))
    const of = (keys: AwsKeys): string => String(signer.sign({ host: 'h.example', path: '/p', body: '' }, keys))
    const seen = new Set<string>()
    for (let day = 0; day < 20; day++) {
      seen.add(of(KEYS)).add(of({ ...KEYS, secretAccessKey: 'other' }))
      now += 86_400_000
    }
    expect(seen.size).toBe(40)
  })
})
