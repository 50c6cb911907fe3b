import type { Dispatcher, OutboundRequest } from '../outbound/dispatcher.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { baseOf, labelOf, lazily, NO_EDITS, textOf, unserved } from './base.ts'
import { generateVerb } from './gemini.ts'
import { readyHeaders, withForwarded } from './headers.ts'
import { modelPath } from './model-path.ts'
import type { Upstream, UpstreamCall } from './upstream.ts'

const isClaude = (model: string): boolean => model.startsWith('claude')

/**
 * Vertex AI: Gemini, and Claude in Anthropic's dialect. Contract: gateway.md 5.2, 5.6.
 * @param tokenNow of the service account or role; may throw UpstreamAuthError
 */
export function vertexUpstream(
  credential: OpenCredential,
  dispatcher: Dispatcher,
  tokenNow: () => string | Promise<string>,
): Upstream {
  const ready = lazily(() => {
    const location = labelOf(credential, 'location')
    const host = location === 'global' ? 'aiplatform.googleapis.com' : `${location}-aiplatform.googleapis.com`
    const { origin, prefix } = baseOf(credential.baseUrl ?? `https://${host}`)
    const project = encodeURIComponent(textOf(credential, 'project'))
    const publishers = `${prefix}/v1/projects/${project}/locations/${location}/publishers`
    return { origin, publishers, headers: readyHeaders(credential, {}) }
  })
  return {
    credential,
    dispatcher,
    edits: { ...NO_EDITS, modelInBody: false },
    dialectOf: (model) => (isClaude(model) ? 'anthropic' : 'gemini'),
    serves: (surface, model) => surface !== 'responses' && !(surface === 'embeddings' && isClaude(model)),
    authenticate: async () => void (await tokenNow()),
    request: (call) => {
      const { origin, publishers, headers } = ready()
      const path = `${publishers}/${pathOf(call)}`
      const relayed = call.surface === 'messages' || call.surface === 'count_tokens' ? ['anthropic-beta'] : []
      const known = withForwarded(headers, call.forwarded, relayed)
      const bearing = (token: string): OutboundRequest => ({
        method: 'POST',
        origin,
        path,
        headers: [...known, 'authorization', `Bearer ${token}`],
      })
      const token = tokenNow()
      return typeof token === 'string' ? bearing(token) : token.then(bearing)
    },
  }
}

function pathOf({ surface, model, stream }: UpstreamCall): string {
  if (surface === 'models') throw unserved('vertex', surface)
  if (surface === 'count_tokens') return 'anthropic/models/count-tokens:rawPredict'
  if (isClaude(model)) return `anthropic/models/${modelPath(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`
  return `google/models/${modelPath(model)}:${surface === 'embeddings' ? 'predict' : generateVerb(stream)}`
}
