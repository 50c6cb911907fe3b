import { speak } from '../speech.ts'
import type { Behaviour } from '../script.ts'
import { jsonReply, object, Refusal, sse, type Failure, type Json, type ReceivedCall, type Reply } from '../wire.ts'
import { chatReply, type ChatStyle } from './openai-answer.ts'
import { embeddingsReply } from './openai-embeddings.ts'
import { CHAT_FIELDS, readChat, type ChatRules } from './openai-request.ts'
import { readResponses, responsesReply } from './openai-responses.ts'
import type { Clock, Provider } from './provider.ts'

export const OPENAI_KEY = 'sk-fake-openai-0123456789abcdef'

/** Status, type and code of each failure. */
type Words = Readonly<Record<Failure, readonly [status: number, type: string, code: string | null, message?: string]>>

const WORDS: Words = {
  invalid: [400, 'invalid_request_error', null],
  auth: [401, 'invalid_request_error', 'invalid_api_key'],
  permission: [403, 'invalid_request_error', 'unsupported_country_region_territory'],
  missing: [404, 'invalid_request_error', 'model_not_found'],
  too_large: [413, 'invalid_request_error', null],
  rate: [429, 'tokens', 'rate_limit_exceeded'],
  quota: [429, 'insufficient_quota', 'insufficient_quota'],
  server: [500, 'server_error', null],
  overloaded: [503, 'server_error', null],
  context: [
    400,
    'invalid_request_error',
    'context_length_exceeded',
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
  ],
  filtered: [400, 'invalid_request_error', 'content_policy_violation'],
}

/** A refusal as the family puts it. */
export function errorBody(
  { failure, message, details }: Refusal,
  words: Words = WORDS,
): { status: number; body: Json } {
  const [status, type, code, own] = words[failure]
  const said = own !== undefined && message.startsWith('scripted: ') ? own : message
  return {
    status: details.status ?? status,
    body: {
      error: { message: said, type: details.type ?? type, param: details.param ?? null, code: details.code ?? code },
    },
  }
}

/** Any header of the call that bears the key. @throws Refusal */
export function checkBearer({ headers }: ReceivedCall, key: string): void {
  const { authorization } = headers
  if (authorization === undefined) {
    throw new Refusal(
      'auth',
      "You didn't provide an API key. You need to provide your API key in an Authorization header.",
    )
  }
  if (authorization === `Bearer ${key}`) return
  throw new Refusal('auth', `Incorrect API key provided: ${authorization.replace('Bearer ', '').slice(0, 8)}***.`)
}

export const modelList = (ids: readonly string[], owner: string, created = 1_700_000_000): Json => ({
  object: 'list',
  data: ids.map((id) => ({ id, object: 'model', created, owned_by: owner })),
})

/** A member of the family on `<base>/chat/completions`, `/embeddings`, `/responses`, `/models`. */
export interface Family {
  readonly base: string
  readonly owner: string
  readonly models: readonly string[]
  readonly rules: ChatRules
  readonly style: ChatStyle
  readonly credential: (url: string) => Json
  readonly authorize: (call: ReceivedCall) => void
  readonly headers?: (call: ReceivedCall) => Record<string, string>
  readonly answer?: (call: ReceivedCall, behaviour: Behaviour) => Reply | undefined
  readonly refuse?: (refusal: Refusal) => { status: number; body: Json }
  readonly noModel?: (model: string) => Refusal
}

const noSuchModel = (model: string): Refusal =>
  new Refusal('missing', `The model \`${model}\` does not exist or you do not have access to it.`, { param: 'model' })

export function familyMember(family: Family, clock: Clock): Provider {
  const { base, rules, style } = family
  const word = family.refuse ?? errorBody
  const withId = (reply: Reply, call: ReceivedCall): Reply => ({
    ...reply,
    headers: { 'x-request-id': `req_fake${call.number}`, ...family.headers?.(call), ...reply.headers },
  })
  const chat = (call: ReceivedCall, behaviour: Behaviour): Reply => {
    const prompt = readChat(call.body, rules)
    if (prompt.model.includes('missing')) throw (family.noModel ?? noSuchModel)(prompt.model)
    const includeUsage = object(call.body.stream_options)['include_usage'] === true
    return chatReply(speak(prompt, behaviour), prompt, style, includeUsage, clock.now())
  }
  const answer = (call: ReceivedCall, behaviour: Behaviour): Reply => {
    const own = family.answer?.(call, behaviour)
    if (own) return own
    if (call.path === `${base}/chat/completions`) return chat(call, behaviour)
    if (call.path === `${base}/embeddings`) return embeddingsReply(call.body)
    const prompt = readResponses(call.body)
    return responsesReply(speak(prompt, behaviour), prompt, clock.now())
  }
  return {
    credential: family.credential,
    aside: (call) => {
      family.authorize(call)
      if (call.method === 'GET' && call.path === `${base}/models`) {
        return withId(jsonReply(modelList(family.models, family.owner)), call)
      }
      const paths = ['chat/completions', 'embeddings', 'responses'].map((name) => `${base}/${name}`)
      if (call.method === 'POST' && paths.includes(call.path)) return undefined
      throw new Refusal('missing', `Invalid URL (${call.method} ${call.path})`, { code: 'unknown_url' })
    },
    answer: (call, behaviour) => withId(answer(call, behaviour), call),
    refuse: (refusal, call) => {
      const { status, body } = word(refusal)
      return withId(jsonReply(body, undefined, status), call)
    },
    errorFrame: (refusal) => sse(word(refusal).body),
  }
}

const callId = (n: number): string => `call_fake${String(n).padStart(20, '0')}`

export const openai = (clock: Clock): Provider =>
  familyMember(
    {
      base: '/v1',
      owner: 'system',
      models: ['gpt-4o', 'gpt-4o-mini', 'gpt-5', 'text-embedding-3-small'],
      rules: { fields: CHAT_FIELDS, isOriginal: true },
      style: { usage: 'asked', callId },
      credential: (url) => ({ base_url: `${url}/v1`, api_key: OPENAI_KEY }),
      authorize: (call) => checkBearer(call, OPENAI_KEY),
      headers: () => ({ 'openai-processing-ms': '7', 'openai-version': '2020-10-01' }),
    },
    clock,
  )

/** Takes what it is sent; tells thoughts as most self-hosted servers do. */
export const compatible = (clock: Clock): Provider =>
  familyMember(
    {
      base: '/v1',
      owner: 'self',
      models: ['local-model', 'org/local-model'],
      rules: {},
      style: { usage: 'asked', callId, reasoning: 'reasoning_content' },
      credential: (url) => ({ base_url: `${url}/v1`, api_key: OPENAI_KEY, config: { responses: true } }),
      authorize: ({ headers }) => {
        if (headers['x-api-key'] === OPENAI_KEY || headers['authorization'] === `Bearer ${OPENAI_KEY}`) return
        if (headers['x-api-key'] === undefined && headers['authorization'] === undefined) return
        throw new Refusal('auth', 'Incorrect API key provided.')
      },
    },
    clock,
  )

/** Asks for no key. */
export const ollama = (clock: Clock): Provider =>
  familyMember(
    {
      base: '/v1',
      owner: 'library',
      models: ['llama3.2:latest', 'qwen3:8b'],
      rules: {},
      style: { usage: 'asked', callId: (n) => `call_${n}abcdefg`, reasoning: 'reasoning', id: 'chatcmpl-42' },
      credential: (url) => ({ base_url: `${url}/v1` }),
      authorize: () => undefined,
      noModel: (model) =>
        new Refusal('missing', `model "${model}" not found, try pulling it first`, { type: 'not_found_error' }),
    },
    clock,
  )
