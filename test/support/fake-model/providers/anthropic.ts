import { speak, tokensOf } from '../speech.ts'
import { invalid, jsonReply, Refusal, sse, type Failure, type Json, type ReceivedCall, type Reply } from '../wire.ts'
import { messageReply } from './claude-answer.ts'
import { readMessages } from './claude-request.ts'
import type { Provider } from './provider.ts'

export const ANTHROPIC_KEY = 'sk-ant-api03-fake0123456789abcdef'

const VERSIONS = ['2023-06-01', '2026-10-21']
const MODELS = ['claude-opus-4-6', 'claude-sonnet-4-5', 'claude-haiku-4-5']

const WORDS: Readonly<Record<Failure, readonly [status: number, type: string, message?: string]>> = {
  invalid: [400, 'invalid_request_error'],
  auth: [401, 'authentication_error'],
  permission: [403, 'permission_error'],
  missing: [404, 'not_found_error'],
  too_large: [413, 'request_too_large'],
  rate: [429, 'rate_limit_error'],
  quota: [
    400,
    'invalid_request_error',
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  ],
  server: [500, 'api_error'],
  overloaded: [529, 'overloaded_error'],
  context: [400, 'invalid_request_error', 'prompt is too long: 208310 tokens > 200000 maximum'],
  filtered: [400, 'invalid_request_error', 'Output blocked by content filtering policy'],
}

export function claudeError(
  { failure, message, details }: Refusal,
  requestId: string | null,
): { status: number; body: Json } {
  const [status, type, own] = WORDS[failure]
  const said = own !== undefined && message.startsWith('scripted: ') ? own : message
  const { code } = details
  const error = {
    type: details.type ?? type,
    message: said,
    ...(code !== undefined && { details: { error_code: code } }),
  }
  return { status: details.status ?? status, body: { type: 'error', error, request_id: requestId } }
}

export const claudeErrorFrame = (refusal: Refusal): ReturnType<typeof sse> =>
  sse(claudeError(refusal, null).body, { event: 'error' })

const requestId = ({ number }: ReceivedCall): string => `req_fake${String(number).padStart(8, '0')}`

/** A key by `x-api-key`, or as bearer. @throws Refusal */
function authorize({ headers }: ReceivedCall): void {
  const { 'x-api-key': key, authorization, 'anthropic-version': version } = headers
  if (key === undefined && authorization === undefined) throw new Refusal('auth', 'x-api-key header is required')
  if (key !== undefined && key !== ANTHROPIC_KEY) throw new Refusal('auth', 'invalid x-api-key')
  if (key === undefined && authorization !== `Bearer ${ANTHROPIC_KEY}`)
    throw new Refusal('auth', 'Invalid bearer token')
  if (version === undefined) throw invalid('anthropic-version: header is required')
  if (!VERSIONS.includes(version)) throw invalid(`anthropic-version: "${version}" is not a valid version`)
}

function models(): Json {
  const data = MODELS.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' }))
  return { data, first_id: MODELS[0], last_id: MODELS.at(-1), has_more: false }
}

function answer({ path, body, headers }: ReceivedCall, behaviour: Parameters<Provider['answer']>[1]): Reply {
  const isCount = path === '/v1/messages/count_tokens'
  const hasSampling = headers['anthropic-version'] === '2023-06-01'
  const prompt = readMessages(body, undefined, { hasSampling, isVertex: false, isCount })
  if (prompt.model.includes('missing')) throw new Refusal('missing', `model: ${prompt.model}`)
  if (isCount) return jsonReply({ input_tokens: behaviour.usage?.input ?? tokensOf(prompt.text) + 3 })
  return messageReply(speak(prompt, behaviour), prompt)
}

export function anthropic(): Provider {
  const withId = (reply: Reply, call: ReceivedCall): Reply => ({
    ...reply,
    headers: { 'request-id': requestId(call), 'anthropic-organization-id': 'org_fake', ...reply.headers },
  })
  return {
    credential: (url) => ({ base_url: url, api_key: ANTHROPIC_KEY }),
    aside: (call) => {
      authorize(call)
      const { method, path } = call
      if (method === 'GET' && path === '/v1/models') return withId(jsonReply(models()), call)
      if (method === 'POST' && (path === '/v1/messages' || path === '/v1/messages/count_tokens')) return undefined
      throw new Refusal('missing', 'Not found')
    },
    answer: (call, behaviour) => withId(answer(call, behaviour), call),
    refuse: (refusal, call) => {
      const { status, body } = claudeError(refusal, requestId(call))
      return withId(jsonReply(body, undefined, status), call)
    },
    errorFrame: claudeErrorFrame,
  }
}
