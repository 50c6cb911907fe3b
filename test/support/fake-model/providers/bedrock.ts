import { embed, speak, tokensOf } from '../speech.ts'
import { invalid, isJson, jsonReply, object, Refusal, string, unknownName } from '../wire.ts'
import type { Failure, Json, ReceivedCall, Reply, Usage } from '../wire.ts'
import { AWS_KEY_ID, AWS_REGION, AWS_SECRET, eventMessage, verifySignature } from './aws.ts'
import { converseReply, readConverse } from './converse.ts'
import type { Clock, Provider } from './provider.ts'

export const BEDROCK_API_KEY = 'bedrock-api-key-fake0123456789'

const WORDS: Readonly<Record<Failure, readonly [status: number, type: string, message?: string]>> = {
  invalid: [400, 'ValidationException'],
  auth: [403, 'UnrecognizedClientException', 'The security token included in the request is invalid.'],
  permission: [403, 'AccessDeniedException'],
  missing: [404, 'ResourceNotFoundException'],
  too_large: [413, 'RequestEntityTooLargeException'],
  rate: [429, 'ThrottlingException', 'Too many requests, please wait before trying again.'],
  quota: [400, 'ServiceQuotaExceededException'],
  server: [500, 'InternalServerException'],
  overloaded: [503, 'ServiceUnavailableException'],
  context: [400, 'ValidationException', 'Input is too long for requested model.'],
  filtered: [400, 'ValidationException'],
}

function words({ failure, message, details }: Refusal): { status: number; type: string; body: Json } {
  const [status, type, own] = WORDS[failure]
  const said = own !== undefined && message.startsWith('scripted: ') ? own : message
  return { status: details.status ?? status, type: details.code ?? details.type ?? type, body: { message: said } }
}

/** Which of an event stream's exceptions stands for a failure. */
const STREAM_TYPES: Partial<Record<Failure, string>> = {
  rate: 'throttlingException',
  invalid: 'validationException',
  server: 'internalServerException',
  overloaded: 'serviceUnavailableException',
}

const counted = (input: number): Usage => ({
  input,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cacheWrite1h: 0,
  reasoning: 0,
})

function invoke(body: unknown, model: string): Reply {
  if (!isJson(body)) throw invalid('Malformed input request')
  if (model.startsWith('amazon.titan-embed')) return titan(body)
  if (!model.startsWith('cohere.embed')) throw invalid('The provided model identifier is invalid.')
  const { texts, input_type: type, output_dimension: dimensions } = body
  const unknown = unknownName(body, [
    'texts',
    'input_type',
    'truncate',
    'embedding_types',
    'output_dimension',
    'max_tokens',
  ])
  if (unknown !== undefined || !Array.isArray(texts) || texts.length === 0 || texts.length > 96) {
    throw invalid('Malformed input request: #/texts: expected maximum item count: 96')
  }
  if (type === undefined) throw invalid('Malformed input request: #: required key [input_type] not found')
  const embeddings = texts.map((text) => embed(String(text), Number(dimensions ?? 16)))
  const body200 = { id: 'fake', response_type: 'embeddings_floats', embeddings, texts }
  const tokens = texts.reduce<number>((sum, text) => sum + tokensOf(String(text)), 0)
  return { ...jsonReply(body200, counted(tokens)), headers: { 'x-amzn-bedrock-input-token-count': String(tokens) } }
}

function titan(body: Json): Reply {
  const unknown = unknownName(body, ['inputText', 'dimensions', 'normalize', 'embeddingTypes'])
  const text = string(body['inputText'])
  if (unknown !== undefined || text === '')
    throw invalid('Malformed input request: #: extraneous key or blank inputText')
  const tokens = tokensOf(text)
  const reply = { embedding: embed(text, Number(body['dimensions'] ?? 16)), inputTextTokenCount: tokens }
  return { ...jsonReply(reply, counted(tokens)), headers: { 'x-amzn-bedrock-input-token-count': String(tokens) } }
}

export function bedrock(clock: Clock): Provider {
  const target = ({ method, path }: ReceivedCall): { model: string; action: string } | undefined => {
    const [, model, action] = /^\/model\/([^/]+)\/(converse|converse-stream|invoke)$/.exec(path) ?? []
    return method === 'POST' && model !== undefined && action !== undefined
      ? { model: decodeURIComponent(model), action }
      : undefined
  }
  const withId = (reply: Reply, { number }: ReceivedCall): Reply => ({
    ...reply,
    headers: { 'x-amzn-requestid': `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`, ...reply.headers },
  })
  return {
    credential: (url) => ({
      base_url: url,
      config: { region: AWS_REGION, access_key_id: AWS_KEY_ID, secret_access_key: AWS_SECRET },
    }),
    aside: (call) => {
      const { authorization = '' } = call.headers
      if (authorization.startsWith('Bearer ')) {
        if (authorization !== `Bearer ${BEDROCK_API_KEY}`) {
          throw new Refusal('permission', 'Authentication failed: Please make sure your API Key is valid.')
        }
      } else verifySignature(call, 'bedrock', clock.now())
      if (!target(call)) throw new Refusal('missing', 'Unknown operation', { type: 'UnknownOperationException' })
      return undefined
    },
    answer: (call, behaviour) => {
      const { model = '', action } = target(call) ?? {}
      if (model.includes('missing')) throw invalid('The provided model identifier is invalid.')
      if (action === 'invoke') return withId(invoke(call.body, model), call)
      const prompt = readConverse(call.body, model, action === 'converse-stream')
      return withId(converseReply(speak(prompt, behaviour), prompt), call)
    },
    refuse: (refusal, call) => {
      const { status, type, body } = words(refusal)
      return withId(
        jsonReply(body, undefined, status, { 'x-amzn-errortype': `${type}:http://internal.amazon.com/` }),
        call,
      )
    },
    errorFrame: (refusal) => {
      const type = refusal.details.code ?? STREAM_TYPES[refusal.failure] ?? 'modelStreamErrorException'
      const headers = { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' }
      return eventMessage(headers, object(words(refusal).body))
    },
  }
}
