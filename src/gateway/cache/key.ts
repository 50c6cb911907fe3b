import { canonicalJson } from '../../base/canonical-json.ts'
import { sha256 } from '../../base/hash.ts'
import { isMap } from '../../base/json.ts'
import type { Json } from '../chat/json.ts'
import type { CacheCall } from '../plane/parts.ts'

/** What says how an answer comes, or on whose behalf, and not what it is. */
const BESIDE: ReadonlySet<string> = new Set(['stream', 'stream_options', 'user', 'metadata'])

/**
 * What equal calls have in common; undefined for a body that cannot be read exactly. Caps on the answer, the refusal of
 * drops and headers for the provider are part of it, as they change what a caller gets. Contract: gateway.md 8.
 */
export function keyOf({ request, caller, pin, forwarded }: CacheCall): string | undefined {
  const body = bodyOf(request)
  if (!body) return undefined
  const { id: organization, settings } = caller.state
  const { surface, model, maxOutputTokens, strict, countOnly } = request
  const asked = Object.fromEntries(Object.entries(body).filter(([name]) => !BESIDE.has(name)))
  if (!isExact(asked)) return undefined
  return sha256(
    canonicalJson([
      organization,
      settings.cache_scope === 'organization' ? null : whoOf(caller),
      [surface, countOnly, strict, maxOutputTokens],
      model,
      pin,
      forwarded,
      asked,
    ]),
  )
}

/** Of numbers beyond, several are read as one. */
const isExact = (value: unknown): boolean =>
  typeof value === 'number'
    ? Math.abs(value) <= Number.MAX_SAFE_INTEGER
    : typeof value !== 'object' || value === null || Object.values(value).every(isExact)

const whoOf = ({ key, userId }: CacheCall['caller']): string => (key ? `key ${key.id}` : `user ${userId}`)

function bodyOf(request: CacheCall['request']): Json | undefined {
  try {
    const body = request.json()
    return isMap(body) ? body : undefined
  } catch {
    return undefined // a relay's provider judges it
  }
}
