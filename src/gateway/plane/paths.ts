import type { Surface } from '../model.ts'

/** What a path under `v1` is for. */
export type Place =
  | { readonly kind: 'inference'; readonly surface: Surface }
  | { readonly kind: 'count_tokens' }
  | { readonly kind: 'models' }
  | { readonly kind: 'model'; readonly id: string }
  | { readonly kind: 'unknown'; readonly path: string }

const PREFIX = '/rest/v1/llm-gateway/v1'
/** Clients join base and path with one slash too many where the base ends with one. */
const UNDER = /^\/rest\/v1\/llm-gateway\/{1,2}v1(?:\/{1,2}([^?]*))?(?:\?.*)?$/s

const PLACES: ReadonlyMap<string, Place> = new Map<string, Place>([
  ['chat/completions', { kind: 'inference', surface: 'chat' }],
  ['messages', { kind: 'inference', surface: 'messages' }],
  ['responses', { kind: 'inference', surface: 'responses' }],
  ['embeddings', { kind: 'inference', surface: 'embeddings' }],
  ['messages/count_tokens', { kind: 'count_tokens' }],
  ['models', { kind: 'models' }],
])

/** By whole URL, as nearly every client writes it. */
const DIRECT: ReadonlyMap<string, Place> = new Map([...PLACES].map(([path, place]) => [`${PREFIX}/${path}`, place]))

/** Whether an URL is one of ours to the letter. */
export const isDirect = (url: string): boolean => DIRECT.has(url)

/** Whether an URL is under one of the bases of clients. Contract: gateway.md 1 */
export const isUnderPlane = (url: string): boolean => DIRECT.has(url) || UNDER.test(url)

export function placeOf(url: string): Place {
  const direct = DIRECT.get(url)
  if (direct) return direct
  const path = UNDER.exec(url)?.[1] ?? ''
  const place = PLACES.get(path)
  if (place) return place
  const id = path.startsWith('models/') ? decoded(path.slice('models/'.length)) : undefined
  if (id !== undefined && id !== '') return { kind: 'model', id }
  return { kind: 'unknown', path: url.split('?', 1)[0] ?? '' }
}

/** Whether errors are told in the envelope of Anthropic's clients. Contract: gateway.md 3.4 */
export function speaksAnthropic(place: Place, url: string, hasVersionHeader: boolean): boolean {
  if (place.kind === 'inference') return place.surface === 'messages'
  if (place.kind === 'count_tokens') return true
  if (place.kind === 'unknown' && /\/v1\/{1,2}messages(?:[/?]|$)/.test(url)) return true
  return hasVersionHeader
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
