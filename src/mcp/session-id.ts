import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { Claim } from '../memory/identity.ts'
import { writer } from '../memory/tools/tool.ts'

/**
 * Sessions over HTTP are kept by the client: their id holds the agent that the handshake pinned, so that they outlive a
 * restart and any server goes on with them. One that somebody made up says no more than a handshake could say, for the
 * agent is verified each time.
 */
const contents = z.strictObject({
  nonce: z.uuid(),
  agentId: writer.optional(),
  provider: z.string().optional(),
  proof: z.record(z.string(), z.unknown()).optional(),
})

/** Of a new session; no two have the same. */
export const newSessionId = (pinned: Claim | undefined): string =>
  Buffer.from(JSON.stringify({ nonce: randomUUID(), ...pinned })).toString('base64url')

/** The agent in a session id, not yet verified; undefined when the id is not one of ours. */
export function readSessionId(id: string): { pinned: Claim | undefined } | undefined {
  const read = contents.safeParse(parse(id))
  if (!read.success) return undefined
  const { agentId, provider, proof } = read.data
  return { pinned: agentId === undefined ? undefined : { agentId, provider, proof } }
}

function parse(id: string): unknown {
  try {
    return JSON.parse(Buffer.from(id, 'base64url').toString())
  } catch {
    return undefined
  }
}
