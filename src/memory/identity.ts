import { createHash } from 'node:crypto'
import * as z from 'zod'
import { sha256 } from '../base/hash.ts'
import { MemoryError } from './errors.ts'

export type Proof = Record<string, unknown>

const OPAQUE = 'opaque'

/** What an agent says of itself before it is believed. */
export interface Claim {
  agentId: string
  /** As named by the caller; unknown ones act as `opaque`. */
  provider: string | undefined
  proof: Proof | undefined
  /** Of a proof that was shown before, and was right. */
  proofHash?: string
}

/** The provider that answers for a name: `opaque` does for any that is unknown. */
export const providerOf = (name: string | undefined): string => (name === 'vendor_session' ? name : OPAQUE)

/**
 * Checks the claim and gives the provider that did the check. Contract: memory.md 16.
 * @throws agent_verification_failed 401.
 */
export function verifyIdentity(claim: Claim): string {
  const provider = providerOf(claim.provider)
  if (provider !== OPAQUE && claim.proofHash === undefined) verifyVendorSession(claim)
  return provider
}

const vendorSessionProof = z.object({
  session_id: z.string(),
  model: z.string(),
  system_prompt: z.string().optional(),
})

function verifyVendorSession({ agentId, proof }: Claim): void {
  const parsed = vendorSessionProof.safeParse(proof)
  if (!parsed.success) {
    throw verificationFailed('vendor_session', 'a proof with session_id and model is required')
  }
  const { session_id, model, system_prompt } = parsed.data
  const prompt = createHash('sha256')
    .update(system_prompt ?? '')
    .digest()
  const digest = createHash('sha256').update(`${session_id}:${model}:`).update(prompt).digest()
  const expected = `agent_vendor_session_${base32(digest).slice(0, 16)}`
  if (agentId.toLowerCase() !== expected) {
    throw verificationFailed('vendor_session', 'the agent id is not the one that this session proves')
  }
}

export const verificationFailed = (provider: string, message: string): MemoryError =>
  new MemoryError('agent_verification_failed', message, { provider })

/** SHA-256 over the keys in sorted order, each as key, byte 0, JSON of the value, byte 0. Contract: memory.md 1.9. */
export const proofHash = (proof: Proof): string =>
  sha256(
    Object.keys(proof)
      .sort()
      .map((key) => `${key}\0${JSON.stringify(proof[key])}\0`)
      .join(''),
  )

/** Of the proof that a claim came with, or was shown for it before. */
export const shownProofHash = ({ proof, proofHash: shown }: Claim): string | undefined =>
  shown ?? (proof && proofHash(proof))

/** RFC 4648 alphabet, lower-case, without padding. */
function base32(bytes: Uint8Array): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      text += alphabet[(value >>> (bits - 5)) & 31]
      bits -= 5
    }
    value &= (1 << bits) - 1
  }
  return bits > 0 ? text + alphabet[(value << (5 - bits)) & 31] : text
}
