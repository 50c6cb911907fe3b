import type { Dispatcher } from '../../outbound/dispatcher.ts'
import { z } from 'zod'
import { sha256 } from '../../../base/hash.ts'
import { jsonOf } from '../../../base/json.ts'
import { UpstreamAuthError } from '../upstream.ts'
import { fixedCall, refusal } from './fixed-call.ts'
import { Renewals, type Lease, type RenewalParts, type Renewed } from './renewed.ts'

/** Where tokens are had; no other address is asked. */
export const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const LIFETIME_S = 3600

const keyFile = z.looseObject({
  client_email: z.string(),
  private_key: z.string(),
  private_key_id: z.string().optional(),
  token_uri: z.string().default(TOKEN_URI),
})
type KeyFile = z.output<typeof keyFile>

const granted = z.looseObject({ access_token: z.string(), expires_in: z.number() })
const denied = z.looseObject({ error: z.string(), error_description: z.string().optional() })

export interface GoogleParts extends RenewalParts {
  readonly dispatcher: () => Dispatcher
  /** Where {@link TOKEN_URI} is: a test has its own. */
  readonly tokenAddress: string
  /** `host[:port]` of the metadata server. */
  readonly metadataHost: string
}

/** Access tokens of Google, by service account or by the role of this machine. Contract: gateway.md 5.2. */
export class GoogleTokens {
  readonly #parts: GoogleParts
  readonly #renewals: Renewals<string>

  constructor(parts: GoogleParts) {
    this.#parts = parts
    this.#renewals = new Renewals(parts)
  }

  /** @param json the key file. Obtaining throws UpstreamAuthError when it is none, or is refused. */
  ofServiceAccount(json: string): Renewed<string> {
    return this.#renewals.of(sha256(json), 'access token of a service account', () => this.#exchange(json))
  }

  ofMachine(): Renewed<string> {
    return this.#renewals.of('', 'access token of this machine', () => this.#ask())
  }

  async #exchange(json: string): Promise<Lease<string>> {
    const account = readAccount(json)
    const { clock, dispatcher, tokenAddress } = this.#parts
    const now = clock.now()
    const assertion = await signAssertion(account, Math.floor(now / 1000))
    const { status, text } = await fixedCall(dispatcher(), tokenAddress, {
      method: 'POST',
      headers: ['content-type', 'application/x-www-form-urlencoded'],
      body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }).toString(),
    })
    return tokenOf('the token exchange', status, text, now)
  }

  async #ask(): Promise<Lease<string>> {
    const { clock, dispatcher, metadataHost } = this.#parts
    const now = clock.now()
    const url = `http://${metadataHost}/computeMetadata/v1/instance/service-accounts/default/token`
    const { status, text } = await fixedCall(dispatcher(), url, { headers: ['metadata-flavor', 'Google'] }).catch(
      (error: unknown) => {
        throw new UpstreamAuthError('this machine has no role: its metadata server does not answer', { cause: error })
      },
    )
    return tokenOf('the metadata server', status, text, now)
  }
}

function readAccount(json: string): KeyFile {
  const { data } = keyFile.safeParse(jsonOf(json))
  if (!data) throw new UpstreamAuthError('the service account is no JSON key with client_email and private_key')
  if (data.token_uri !== TOKEN_URI) {
    throw new UpstreamAuthError(`the token_uri of the service account is not ${TOKEN_URI}`)
  }
  return data
}

async function signAssertion({ client_email, private_key, private_key_id }: KeyFile, now: number): Promise<string> {
  const { importPKCS8, SignJWT } = await import('jose') // 20 ms, which only few need
  const key = await importPKCS8(private_key, 'RS256').catch((error: unknown) => {
    throw new UpstreamAuthError('the private_key of the service account cannot be read', { cause: error })
  })
  return new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(private_key_id !== undefined && { kid: private_key_id }) })
    .setIssuer(client_email)
    .setAudience(TOKEN_URI)
    .setIssuedAt(now)
    .setExpirationTime(now + LIFETIME_S)
    .sign(key)
}

function tokenOf(what: string, status: number, text: string, now: number): Lease<string> {
  const answer = jsonOf(text)
  const { data } = granted.safeParse(answer)
  if (status === 200 && data) return { value: data.access_token, endsAt: now + data.expires_in * 1000 }
  const { data: problem } = denied.safeParse(answer)
  throw refusal(what, status, problem && [problem.error, problem.error_description].filter(Boolean).join(', '))
}
