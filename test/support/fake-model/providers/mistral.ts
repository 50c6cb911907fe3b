import { invalid, Refusal, type Json, words } from '../wire.ts'
import { embeddingsReply } from './openai-embeddings.ts'
import { checkBearer, errorBody, familyMember } from './openai.ts'
import type { Clock, Provider } from './provider.ts'

export const MISTRAL_KEY = 'fakeMistralKey0123456789abcdefgh'

const FIELDS = words(`
  model messages stream temperature top_p max_tokens stop random_seed metadata n response_format tools
  tool_choice presence_penalty frequency_penalty prediction parallel_tool_calls prompt_mode reasoning_effort
  safe_prompt guardrails prompt_cache_key
`)
const MESSAGE_FIELDS = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'prefix'],
  tool: ['role', 'content', 'name', 'tool_call_id'],
}

const extra = (name: string, input: unknown): Refusal =>
  new Refusal(
    'invalid',
    JSON.stringify({
      detail: [
        { type: 'extra_forbidden', loc: ['body', ...name.split('.')], msg: 'Extra inputs are not permitted', input },
      ],
    }),
    { status: 422 },
  )

function checkCallId(id: string): void {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return
  throw invalid(`Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`, {
    type: 'invalid_function_call',
    code: '3280',
  })
}

/** Its own words: 422 carries the list of what was extra, 401 little. */
function worded(refusal: Refusal): { status: number; body: Json } {
  const { status, body } = errorBody(refusal)
  if (status === 401) return { status, body: { detail: 'Unauthorized' } }
  const { type, param, code } = Object(body['error'])
  const message: unknown = refusal.message.startsWith('{') ? JSON.parse(refusal.message) : refusal.message
  return { status, body: { object: 'error', message, type, param, code } }
}

export const mistral = (clock: Clock): Provider =>
  familyMember(
    {
      base: '/v1',
      owner: 'mistralai',
      models: ['mistral-large-latest', 'magistral-medium-latest', 'mistral-embed'],
      rules: { fields: FIELDS, messageFields: MESSAGE_FIELDS, refuseUnknown: extra, checkCallId },
      style: {
        usage: 'last',
        reasoning: 'chunks',
        callId: (n) => `fakeCall${n}`.slice(-9),
        stops: { length: 'length' },
        id: 'cmpl-fake0001',
      },
      credential: (url) => ({ base_url: `${url}/v1`, api_key: MISTRAL_KEY }),
      authorize: (call) => checkBearer(call, MISTRAL_KEY),
      refuse: worded,
      answer: ({ path, body }) =>
        path.endsWith('/embeddings')
          ? embeddingsReply(body, {
              fields: ['model', 'input', 'metadata', 'output_dimension', 'output_dtype', 'encoding_format'],
              dimensions: 'output_dimension',
              maxInputs: 512,
              takesTokens: false,
              knowsBase64: false,
            })
          : undefined,
      noModel: (model) =>
        new Refusal('missing', `Invalid model: ${model}`, { status: 400, type: 'invalid_model', code: '1500' }),
    },
    clock,
  )
