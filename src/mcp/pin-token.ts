import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { secretEquals } from '../base/hash.ts'
import type { Claim } from '../memory/identity.ts'
import { isMap } from './frames.ts'

/**
 * Sessions over HTTP are kept by the client: the session id is the pinned agent, signed. So a server forgets nothing when
 * it restarts, and any other with the same key goes on with it.
 */
export class PinTokens {
  readonly #secret: Buffer

  /** Without an API key, tokens live as long as this process. */
  constructor(apiKey: string | undefined) {
    this.#secret =
      apiKey === undefined ? randomBytes(32) : Buffer.from(hkdfSync('sha256', apiKey, '', 'mcp session', 32))
  }

  seal(claim: Claim): string {
    const body = Buffer.from(JSON.stringify(claim)).toString('base64url')
    return `${body}.${this.#sign(body)}`
  }

  /** The agent in a token; undefined when it is not one of ours. */
  open(token: string): Claim | undefined {
    const [body = '', signature = ''] = token.split('.')
    if (!secretEquals(signature, this.#sign(body))) return undefined
    const { agentId, provider, proof }: Record<string, unknown> = JSON.parse(Buffer.from(body, 'base64url').toString())
    return {
      agentId: String(agentId),
      provider: typeof provider === 'string' ? provider : undefined,
      proof: isMap(proof) ? proof : undefined,
    }
  }

  #sign(body: string): string {
    return createHmac('sha256', this.#secret).update(body).digest('base64url')
  }
}
