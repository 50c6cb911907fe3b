import type { Dispatcher } from '../outbound/dispatcher.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { baseOf, lazily, NO_EDITS, textOf, unserved } from './base.ts'
import { readyHeaders, withForwarded } from './headers.ts'
import type { Upstream, UpstreamCall } from './upstream.ts'

const PATHS: Readonly<Record<UpstreamCall['surface'], string | undefined>> = {
  chat: '/v1/messages',
  messages: '/v1/messages',
  count_tokens: '/v1/messages/count_tokens',
  models: '/v1/models?limit=1000',
  responses: undefined,
  embeddings: undefined,
}

/** Contract: gateway.md 5.2. */
export function anthropicUpstream(credential: OpenCredential, dispatcher: Dispatcher): Upstream {
  const { api_key: key } = credential.secrets
  const ready = lazily(() => ({
    ...baseOf(credential.baseUrl ?? 'https://api.anthropic.com'),
    headers: readyHeaders(credential, {
      'anthropic-version': textOf(credential, 'anthropic_version'),
      ...(key !== undefined && { 'x-api-key': key }),
    }),
  }))
  return {
    credential,
    dispatcher,
    edits: NO_EDITS,
    dialectOf: () => 'anthropic',
    serves: (surface) => surface === 'chat' || surface === 'messages',
    request: ({ surface, forwarded }) => {
      const { origin, prefix, headers } = ready()
      const path = PATHS[surface]
      if (path === undefined) throw unserved('anthropic', surface)
      // A chat is translated: what its client says of a version is not about this body.
      const relayed =
        surface === 'messages' || surface === 'count_tokens' ? ['anthropic-version', 'anthropic-beta'] : []
      return {
        method: surface === 'models' ? 'GET' : 'POST',
        origin,
        path: prefix + path,
        headers: withForwarded(headers, forwarded, relayed),
      }
    },
  }
}
