import type { IncomingHttpHeaders } from 'node:http'
import { invalid } from '../errors.ts'
import type { Alias } from '../model.ts'
import type { CacheWish } from './parts.ts'

const STANDARD_SECONDS = 300
const MOST_SECONDS = 86_400

/** What client or alias wish of the cache; undefined: nothing. @throws GatewayError 400. Contract: gateway.md 8 */
export function wishOf(headers: IncomingHttpHeaders, alias: Alias | undefined): CacheWish | undefined {
  const mode = headers['x-mem-cache'] ?? (alias?.cache_ttl === undefined ? 'off' : 'on')
  const ttl = headers['x-mem-cache-ttl']
  if (mode === 'off') return undefined
  if (mode !== 'on' && mode !== 'refresh') throw invalid('x-mem-cache must be on, refresh or off', 'x-mem-cache')
  const seconds = ttl === undefined ? (alias?.cache_ttl ?? STANDARD_SECONDS) : Number(ttl)
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > MOST_SECONDS) {
    throw invalid(`x-mem-cache-ttl must be 1 to ${MOST_SECONDS} whole seconds`, 'x-mem-cache-ttl')
  }
  return { mode, ttlMs: seconds * 1000 }
}
