import type { Kind, Surface } from '../model.ts'
import type { Dispatcher } from '../outbound/dispatcher.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { baseOf, lazily, NO_EDITS, textOf, unserved } from './base.ts'
import { readyHeaders, withForwarded } from './headers.ts'
import type { RelayEdits, Upstream, UpstreamCall } from './upstream.ts'

/** The kinds that differ in address and edits only. */
type OpenAiKind = Extract<Kind, 'openai' | 'mistral' | 'groq' | 'ollama' | 'openai-compatible'>

const BASES: Partial<Record<Kind, string>> = {
  openai: 'https://api.openai.com/v1',
  mistral: 'https://api.mistral.ai/v1',
  groq: 'https://api.groq.com/openai/v1',
  ollama: 'http://127.0.0.1:11434/v1',
}

export const OPENAI_PATHS: Readonly<Record<UpstreamCall['surface'], string | undefined>> = {
  chat: '/chat/completions',
  messages: '/chat/completions',
  responses: '/responses',
  embeddings: '/embeddings',
  models: '/models',
  count_tokens: undefined,
}

/** `openai`, `mistral`, `groq`, `ollama`, `openai-compatible`. Contract: gateway.md 5.2. */
export function openAiUpstream(kind: OpenAiKind, credential: OpenCredential, dispatcher: Dispatcher): Upstream {
  const ready = lazily(() => ({
    ...baseOf(credential.baseUrl ?? BASES[kind] ?? ''),
    headers: readyHeaders(credential, ownHeaders(kind, credential)),
  }))
  return {
    credential,
    dispatcher,
    edits: editsOf(kind, credential),
    dialectOf: () => 'openai',
    serves: (surface) => serves(kind, credential, surface),
    request: ({ surface, forwarded }) => {
      const { origin, prefix, headers } = ready()
      const path = OPENAI_PATHS[surface]
      if (path === undefined) throw unserved(kind, surface)
      return {
        method: surface === 'models' ? 'GET' : 'POST',
        origin,
        path: prefix + path,
        headers: withForwarded(headers, forwarded, ['openai-beta']),
      }
    },
  }
}

function ownHeaders(kind: OpenAiKind, credential: OpenCredential): Record<string, string> {
  const { api_key: key } = credential.secrets
  const { auth = 'bearer' } = kind === 'openai-compatible' ? credential.config : {}
  const [organization, project] =
    kind === 'openai' ? ['organization', 'project'].map((name) => textOf(credential, name)) : []
  return {
    ...(key !== undefined && auth === 'bearer' && { authorization: `Bearer ${key}` }),
    ...(key !== undefined && auth === 'x-api-key' && { 'x-api-key': key }),
    ...(organization && { 'openai-organization': organization }),
    ...(project && { 'openai-project': project }),
  }
}

function serves(kind: OpenAiKind, { config }: OpenCredential, surface: Surface): boolean {
  if (surface === 'responses') return kind === 'openai-compatible' ? config['responses'] === true : kind !== 'mistral'
  return surface !== 'embeddings' || kind !== 'groq'
}

function editsOf(kind: OpenAiKind, { config }: OpenCredential): RelayEdits {
  if (kind === 'groq') return { ...NO_EDITS, drop: ['logprobs', 'top_logprobs', 'logit_bias'], streamUsage: false }
  if (kind === 'mistral') {
    return {
      drop: ['stream_options', 'user', 'store', 'logprobs', 'top_logprobs', 'logit_bias'],
      rename: { max_completion_tokens: 'max_tokens', seed: 'random_seed', dimensions: 'output_dimension' },
      streamUsage: false,
      modelInBody: true,
    }
  }
  if (kind !== 'openai-compatible') return NO_EDITS
  const { drop, stream_usage: streamUsage } = config
  return {
    ...NO_EDITS,
    drop: Array.isArray(drop) ? drop.filter((field) => typeof field === 'string') : [],
    streamUsage: streamUsage !== false,
  }
}
