import type { Candidate } from '../routing/candidate.ts'
import type { InferenceRequest } from './exchange.ts'

const CAPS = ['max_completion_tokens', 'max_tokens', 'max_output_tokens']

/**
 * What a request's cap must not exceed with a candidate: the key's, the asked alias's, and that of the alias that served as
 * its fallback. Contract: gateway.md 9.
 */
export const allowedCap = ({ maxOutputTokens }: InferenceRequest, { alias }: Candidate): number | undefined =>
  smaller(maxOutputTokens, alias?.max_output_tokens)

/** The most tokens that a candidate's answer may have; undefined when nobody names a number. */
export function outputCap(request: InferenceRequest, candidate: Candidate): number | undefined {
  const { body, members } = request
  let asked: number | undefined
  for (const name of CAPS) {
    const member = members.get(name)
    const cap = member ? Number(body.toString('latin1', member.start, member.end)) : Number.NaN
    // Where a body names two, the provider may read either.
    if (Number.isSafeInteger(cap) && cap > 0 && (asked === undefined || cap > asked)) asked = cap
  }
  return smaller(asked, allowedCap(request, candidate))
}

export const smaller = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || (b !== undefined && b < a) ? b : a
