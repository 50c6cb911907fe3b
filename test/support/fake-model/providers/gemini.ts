import { embed, speak, tokensOf } from '../speech.ts'
import { invalid, isJson, jsonReply, list, object, Refusal, sse, string, unknownName } from '../wire.ts'
import type { Failure, Json, ReceivedCall, Reply } from '../wire.ts'
import { generateReply } from './gemini-answer.ts'
import { readGenerate } from './gemini-request.ts'
import type { Provider } from './provider.ts'

export const GEMINI_KEY = 'AIzaFake0123456789abcdefghijklmnopqrstu'

const MODELS = ['gemini-3-pro', 'gemini-2.5-flash', 'gemini-embedding-001']

const WORDS: Readonly<
  Record<Failure, readonly [code: number, status: string, reason: string | undefined, message?: string]>
> = {
  invalid: [400, 'INVALID_ARGUMENT', undefined],
  auth: [400, 'INVALID_ARGUMENT', 'API_KEY_INVALID', 'API key not valid. Please pass a valid API key.'],
  permission: [403, 'PERMISSION_DENIED', 'SERVICE_DISABLED'],
  missing: [404, 'NOT_FOUND', undefined],
  too_large: [413, 'INVALID_ARGUMENT', undefined],
  rate: [429, 'RESOURCE_EXHAUSTED', 'RATE_LIMIT_EXCEEDED'],
  quota: [
    429,
    'RESOURCE_EXHAUSTED',
    undefined,
    'You exceeded your current quota, please check your plan and billing details.',
  ],
  server: [500, 'INTERNAL', undefined],
  overloaded: [503, 'UNAVAILABLE', undefined, 'The model is overloaded. Please try again later.'],
  context: [
    400,
    'INVALID_ARGUMENT',
    undefined,
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  ],
  filtered: [400, 'INVALID_ARGUMENT', undefined],
}

/** A refusal as Google puts it. */
export function googleError({ failure, message, details }: Refusal): { status: number; body: Json } {
  const [code, status, reason, own] = WORDS[failure]
  const said = own !== undefined && (message.startsWith('scripted: ') || message === '') ? own : message
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'googleapis.com' }
  const error = {
    code: details.status ?? code,
    message: said,
    status,
    ...(reason !== undefined && { details: [info] }),
  }
  return { status: error.code, body: { error } }
}

/** `:generateContent` and its stream, for whoever may call it. @throws Refusal */
export function generate(
  call: ReceivedCall,
  model: string,
  action: string,
  behaviour: Parameters<Provider['answer']>[1],
): Reply {
  if (model.includes('missing')) {
    throw new Refusal(
      'missing',
      `models/${model} is not found for API version v1beta, or is not supported for ${action}.`,
    )
  }
  const prompt = readGenerate(call.body, model, action === 'streamGenerateContent')
  return generateReply(speak(prompt, behaviour), prompt, call.query.get('alt') === 'sse')
}

function embeddings(body: unknown, model: string): Reply {
  const requests = list(object(body)['requests'])
  if (requests.length === 0 || requests.length > 100) {
    throw invalid('* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch')
  }
  const known = ['model', 'content', 'taskType', 'title', 'outputDimensionality']
  const values = requests.map((request, i) => {
    const unknown = unknownName(request, known)
    if (unknown !== undefined)
      throw invalid(`Invalid JSON payload received. Unknown name "${unknown}" at 'requests[${i}]'`)
    if (request['model'] !== `models/${model}`)
      throw invalid(`* BatchEmbedContentsRequest.requests[${i}].model: unexpected model`)
    const text = list(object(request['content'])['parts'])
      .map((part) => string(part['text']))
      .join('')
    if (text === '') throw invalid('content is empty')
    return { values: embed(text, Number(request['outputDimensionality'] ?? 16)) }
  })
  return jsonReply({ embeddings: values })
}

export function gemini(): Provider {
  const parse = ({ method, path }: ReceivedCall): { model: string; action: string } | undefined => {
    const [, model, action] = /^\/v1(?:beta|alpha)?\/models\/([^/:]+):(\w+)$/.exec(path) ?? []
    const known = ['generateContent', 'streamGenerateContent', 'batchEmbedContents', 'countTokens']
    if (method !== 'POST' || model === undefined || action === undefined || !known.includes(action)) return undefined
    return { model: decodeURIComponent(model), action }
  }
  return {
    credential: (url) => ({ base_url: url, api_key: GEMINI_KEY }),
    aside: (call) => {
      const { headers, query, method, path } = call
      const key = headers['x-goog-api-key'] ?? query.get('key')
      if (key === null) {
        throw new Refusal(
          'permission',
          "Method doesn't allow unregistered callers (callers without established identity).",
        )
      }
      if (key !== GEMINI_KEY) throw new Refusal('auth', '')
      if (method === 'GET' && /^\/v1(beta|alpha)?\/models$/.test(path)) {
        const models = MODELS.map((name) => ({
          name: `models/${name}`,
          displayName: name,
          supportedGenerationMethods: ['generateContent'],
        }))
        return jsonReply({ models })
      }
      if (!parse(call)) throw new Refusal('missing', '')
      return undefined
    },
    answer: (call, behaviour) => {
      const { model = '', action = '' } = parse(call) ?? {}
      if (action === 'batchEmbedContents') return embeddings(call.body, model)
      if (action === 'countTokens')
        return jsonReply({ totalTokens: isJson(call.body) ? tokensOf(JSON.stringify(call.body)) : 0 })
      return generate(call, model, action, behaviour)
    },
    refuse: (refusal) => {
      const { status, body } = googleError(refusal)
      return jsonReply(body, undefined, status)
    },
    errorFrame: (refusal) => sse(googleError(refusal).body),
  }
}
