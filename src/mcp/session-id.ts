import { createHmac, hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import * as z from 'zod'
import { secretEquals } from '../base/hash.ts'
import { jsonOf } from '../base/json.ts'
import { shownProofHash, type Claim } from '../memory/identity.ts'
import { agentIdSchema } from '../memory/requests.ts'

const contents = z.strictObject({
  nonce: z.uuid(),
  agentId: agentIdSchema.optional(),
  provider: z.string().optional(),
  proofHash: z.string().optional(),
  seal: z.string().optional(),
})
type Contents = z.infer<typeof contents>

/**
 * Sessions over HTTP are kept by the client: their id holds the agent that the handshake pinned, so that they outlive a
 * restart and any server with the same key goes on with them. Of a proof it holds the hash alone, sealed: that it was right.
 * An id that somebody made up says no more than a handshake could say, for the agent is verified each time.
 */
export class SessionIds {
  readonly #key: Buffer

  /** Without a key, what a proof was shown for ends with the process, and the client shows it again. */
  constructor(apiKey: string | undefined) {
    this.#key = Buffer.from(hkdfSync('sha256', apiKey ?? randomBytes(32), '', 'mem tool session', 32))
  }

  /** Of a new session; no two have the same. */
  create(pinned: Claim | undefined): string {
    const proofHash = pinned && shownProofHash(pinned)
    const said = { nonce: randomUUID(), agentId: pinned?.agentId, provider: pinned?.provider, proofHash }
    const sealed = proofHash === undefined ? said : { ...said, seal: this.#seal(said) }
    return Buffer.from(JSON.stringify(sealed)).toString('base64url')
  }

  /** The agent in a session id, not yet verified; undefined when the id is not one of ours. */
  read(id: string): { pinned: Claim | undefined } | undefined {
    const { success, data } = contents.safeParse(jsonOf(Buffer.from(id, 'base64url').toString()))
    if (!success) return undefined
    const { agentId, provider, proofHash, seal = '' } = data
    if (proofHash !== undefined && !secretEquals(seal, this.#seal(data))) return undefined
    if (agentId === undefined) return { pinned: undefined }
    return { pinned: { agentId, provider, proof: undefined, ...(proofHash !== undefined && { proofHash }) } }
  }

  #seal({ nonce, agentId, provider, proofHash }: Contents): string {
    const said = JSON.stringify([nonce, agentId, provider, proofHash])
    return createHmac('sha256', this.#key).update(said).digest('base64url')
  }
}
