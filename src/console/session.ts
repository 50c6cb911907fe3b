import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { secretEquals } from '../base/hash.ts'

export const SESSION_COOKIE = 'mem_session'
export const SESSION_SECONDS = 86_400

/**
 * Signed sessions without state on the server: `<payload>.<HMAC-SHA256>`, both base64url, the payload `{exp, nonce}` with
 * `exp` in seconds. The signing key comes from the API key, so another key ends every session. Contract: memory.md 14.
 */
export class Sessions {
  readonly #apiKey: string
  readonly #key: Buffer
  readonly #clock: Clock

  constructor(apiKey: string, clock: Clock) {
    this.#apiKey = apiKey
    this.#key = Buffer.from(hkdfSync('sha256', apiKey, '', 'mem console session', 32))
    this.#clock = clock
  }

  /** A new cookie for whoever knows the key; undefined for others. */
  open(sentKey: string): string | undefined {
    if (!secretEquals(sentKey, this.#apiKey)) return undefined
    const exp = Math.floor(this.#clock.now() / 1000) + SESSION_SECONDS
    const payload = Buffer.from(JSON.stringify({ exp, nonce: randomBytes(16).toString('base64url') }))
    const encoded = payload.toString('base64url')
    return `${encoded}.${this.#sign(encoded)}`
  }

  /** Signed with this key, and not past its end. */
  isValid(cookie: string | undefined): cookie is string {
    const [payload = '', signature = '', ...rest] = cookie?.split('.') ?? []
    if (rest.length > 0 || !secretEquals(signature, this.#sign(payload))) return false
    const { exp }: { exp: number } = JSON.parse(Buffer.from(payload, 'base64url').toString())
    return exp > this.#clock.now() / 1000
  }

  /** The token that forms of this session carry. */
  csrfToken(cookie: string): string {
    return this.#sign(`csrf ${cookie}`)
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url')
  }
}
