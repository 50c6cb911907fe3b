import { createHash } from 'node:crypto'

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest()

/** The id that a vendor session proves (memory.md 16), worked out apart from the product. */
export function vendorAgentId(sessionId: string, model: string, systemPrompt = ''): string {
  const digest = sha256(Buffer.concat([Buffer.from(`${sessionId}:${model}:`), sha256(systemPrompt)]))
  const bits = [...digest].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const letters = (bits.match(/.{5}/g) ?? []).map(
    (group) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(group, 2)],
  )
  return `agent_vendor_session_${letters.slice(0, 16).join('')}`
}

/** SHA-256 over the sorted keys, each as key, byte 0, JSON of the value, byte 0 (memory.md 1.9). */
export const proofHash = (proof: Record<string, unknown>): string =>
  sha256(
    Object.entries(proof)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => `${key}\0${JSON.stringify(value)}\0`)
      .join(''),
  ).toString('hex')
