import type { Surface } from '../model.ts'
import type { Member } from '../relay/body.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { InferenceRequest } from './exchange.ts'

/** Where each surface says how much may be answered, the first where none is there; providers ignore fields of another. */
export const CAPS: Readonly<Record<Surface, readonly string[]>> = {
  chat: ['max_completion_tokens', 'max_tokens'],
  messages: ['max_tokens'],
  responses: ['max_output_tokens'],
  embeddings: [],
}

/**
 * What a request's cap must not exceed with a candidate: the key's, the asked alias's, and that of the alias that served as
 * its fallback. Contract: gateway.md 9.
 */
export const allowedCap = ({ maxOutputTokens }: InferenceRequest, { alias }: Candidate): number | undefined =>
  smaller(maxOutputTokens, alias?.max_output_tokens)

/** The most tokens that a candidate's answer may have; undefined when nobody names a number. */
export function outputCap(request: InferenceRequest, candidate: Candidate): number | undefined {
  const { surface, body, members } = request
  const asked = CAPS[surface].flatMap((name) => capIn(body, members.get(name)) ?? [])
  // Where a body names two, the provider may read either.
  return smaller(asked.length > 0 ? Math.max(...asked) : undefined, allowedCap(request, candidate))
}

/** The largest that a field says; none where it says none once, which the provider may read. */
function capIn(body: Buffer, member: Member | undefined): number | undefined {
  let largest: number | undefined
  for (let each = member; each; each = each.earlier) {
    const cap = Number(body.toString('latin1', each.start, each.end))
    if (!Number.isSafeInteger(cap) || cap <= 0) return undefined
    largest = Math.max(largest ?? 0, cap)
  }
  return largest
}

export const smaller = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || (b !== undefined && b < a) ? b : a
