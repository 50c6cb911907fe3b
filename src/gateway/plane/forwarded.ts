import type { IncomingHttpHeaders } from 'node:http'
import type { UpstreamCall } from '../kinds/upstream.ts'
import type { Dialect } from '../model.ts'

export const NONE: UpstreamCall['forwarded'] = {}

const NAMES: Partial<Record<Dialect, readonly string[]>> = {
  openai: ['openai-beta'],
  anthropic: ['anthropic-version', 'anthropic-beta'],
}

/** The client's headers that travel along on a relay of their dialect. Contract: gateway.md 3.3. */
export function forwardedOf(
  { dialect }: { dialect: Dialect },
  headers: IncomingHttpHeaders,
): UpstreamCall['forwarded'] {
  const names = NAMES[dialect]?.filter((name) => headers[name] !== undefined) ?? []
  return names.length === 0 ? NONE : Object.fromEntries(names.map((name) => [name, String(headers[name])]))
}

/** All that may travel along, whoever is called: what an answer may depend on. */
export const forwardable = (headers: IncomingHttpHeaders): string[] =>
  Object.values(NAMES).flatMap((names) => names.map((name) => String(headers[name] ?? '')))
