import type { Dispatcher } from '../outbound/dispatcher.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { baseOf, lazily, NO_EDITS, textOf, unserved } from './base.ts'
import { readyHeaders, withForwarded } from './headers.ts'
import { modelPath } from './model-path.ts'
import { OPENAI_PATHS } from './openai.ts'
import type { Upstream } from './upstream.ts'

/** Azure OpenAI: by deployment and version, or the unversioned paths of `v1`. Contract: gateway.md 5.2. */
export function azureOpenAiUpstream(credential: OpenCredential, dispatcher: Dispatcher): Upstream {
  const version = textOf(credential, 'api_version')
  const { api_key: key } = credential.secrets
  const ready = lazily(() => ({
    ...baseOf(credential.baseUrl ?? textOf(credential, 'endpoint')),
    headers: readyHeaders(credential, key === undefined ? {} : { 'api-key': key }),
  }))
  const pathOf = (path: string, model: string, isList: boolean): string => {
    if (version === 'v1') return `/openai/v1${path}`
    const within = isList ? '/openai' : `/openai/deployments/${modelPath(model)}`
    return `${within}${path}?api-version=${encodeURIComponent(version)}`
  }
  return {
    credential,
    dispatcher,
    edits: NO_EDITS,
    dialectOf: () => 'openai',
    serves: (surface) => surface !== 'responses' || version === 'v1',
    request: ({ surface, model, forwarded }) => {
      const { origin, prefix, headers } = ready()
      const path = OPENAI_PATHS[surface]
      if (path === undefined) throw unserved('azure-openai', surface)
      const isList = surface === 'models'
      return {
        method: isList ? 'GET' : 'POST',
        origin,
        path: prefix + pathOf(path, model, isList),
        headers: withForwarded(headers, forwarded, ['openai-beta']),
      }
    },
  }
}
