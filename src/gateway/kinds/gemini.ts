import type { Dispatcher } from '../outbound/dispatcher.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { baseOf, lazily, NO_EDITS, textOf } from './base.ts'
import { readyHeaders } from './headers.ts'
import { modelPath } from './model-path.ts'
import type { Upstream } from './upstream.ts'

/** What follows a model in the paths of Gemini: `stream` as server-sent events. */
export const generateVerb = (stream: boolean): string => (stream ? 'streamGenerateContent?alt=sse' : 'generateContent')

/** Contract: gateway.md 5.2, 5.6. */
export function geminiUpstream(credential: OpenCredential, dispatcher: Dispatcher): Upstream {
  const { api_key: key } = credential.secrets
  const ready = lazily(() => ({
    ...baseOf(credential.baseUrl ?? 'https://generativelanguage.googleapis.com'),
    headers: readyHeaders(credential, key === undefined ? {} : { 'x-goog-api-key': key }),
  }))
  const models = `/${encodeURIComponent(textOf(credential, 'api_version'))}/models`
  return {
    credential,
    dispatcher,
    edits: { ...NO_EDITS, modelInBody: false },
    dialectOf: () => 'gemini',
    serves: (surface) => surface !== 'responses',
    request: ({ surface, model, stream }) => {
      const { origin, prefix, headers } = ready()
      if (surface === 'models') return { method: 'GET', origin, path: `${prefix}${models}?pageSize=1000`, headers }
      const verb = surface === 'embeddings' ? 'batchEmbedContents' : generateVerb(stream)
      return { method: 'POST', origin, path: `${prefix}${models}/${modelPath(model)}:${verb}`, headers }
    },
  }
}
