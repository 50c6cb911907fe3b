import { list, object, Refusal, invalid, type ReceivedCall } from '../wire.ts'
import { checkBearer, familyMember } from './openai.ts'
import { CHAT_FIELDS } from './openai-request.ts'
import type { Clock, Provider } from './provider.ts'

export const GROQ_KEY = 'gsk_fake0123456789abcdefghij'

/** What Groq's chat knows by name and refuses all the same. */
const REFUSED = ['logprobs', 'top_logprobs', 'logit_bias']

const FIELDS = [...CHAT_FIELDS, 'reasoning_format', 'include_reasoning', 'search_settings', 'citation_options']

function checkFields({ body }: ReceivedCall): void {
  const refused = REFUSED.find((name) => object(body)[name] !== undefined)
  if (refused !== undefined) throw invalid(`\`${refused}\` is not supported with this model`, { param: refused })
  const named = list(object(body)['messages']).findIndex((message) => message['name'] !== undefined)
  if (named >= 0) throw invalid(`'messages.${named}' : property 'name' is unsupported`)
  if (Number(object(body)['n'] ?? 1) > 1) throw invalid("'n' : number must be at most 1")
}

export const groq = (clock: Clock): Provider =>
  familyMember(
    {
      base: '/openai/v1',
      owner: 'Groq',
      models: ['llama-3.3-70b-versatile', 'openai/gpt-oss-120b'],
      rules: { fields: FIELDS },
      style: { usage: 'x_groq', callId: (n) => `call_fake${n}`, reasoning: 'reasoning' },
      credential: (url) => ({ base_url: `${url}/openai/v1`, api_key: GROQ_KEY }),
      authorize: (call) => checkBearer(call, GROQ_KEY),
      answer: (call) => {
        if (call.path.endsWith('/embeddings')) throw new Refusal('missing', `Unknown request URL: POST ${call.path}.`)
        if (call.path.endsWith('/chat/completions')) checkFields(call)
        return undefined
      },
    },
    clock,
  )
