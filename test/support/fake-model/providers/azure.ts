import { speak } from '../speech.ts'
import { isJson, jsonReply, object, Refusal, sse, type Json, type ReceivedCall, type Reply } from '../wire.ts'
import { chatReply, type ChatStyle } from './openai-answer.ts'
import { embeddingsReply } from './openai-embeddings.ts'
import { CHAT_FIELDS, readChat } from './openai-request.ts'
import { errorBody, modelList } from './openai.ts'
import { readResponses, responsesReply } from './openai-responses.ts'
import type { Clock, Provider } from './provider.ts'

export const AZURE_KEY = 'fakeazure0123456789abcdef01234567'

const RESULTS = {
  hate: { filtered: false, severity: 'safe' },
  self_harm: { filtered: false, severity: 'safe' },
  sexual: { filtered: false, severity: 'safe' },
  violence: { filtered: false, severity: 'safe' },
}
const PROMPT_RESULTS = [{ prompt_index: 0, content_filter_results: RESULTS }]

const STYLE: ChatStyle = {
  usage: 'asked',
  callId: (n) => `call_azure${n}`,
  choice: { content_filter_results: RESULTS },
  preface: sse({ choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: PROMPT_RESULTS }),
}

/** The deployment, and what is done with it; undefined for no address of an inference. */
function target({
  path,
  query,
  body,
}: ReceivedCall): { deployment: string; action: string; isVersioned: boolean } | undefined {
  const versioned = /^\/openai\/deployments\/([^/]+)\/(chat\/completions|embeddings)$/.exec(path)
  if (versioned) {
    if (!/^\d{4}-\d{2}-\d{2}(-preview)?$/.test(query.get('api-version') ?? '')) throw notFound()
    const [, deployment = '', action = ''] = versioned
    return { deployment: decodeURIComponent(deployment), action, isVersioned: true }
  }
  const [, action] = /^\/openai\/v1\/(chat\/completions|embeddings|responses)$/.exec(path) ?? []
  return action === undefined ? undefined : { deployment: String(object(body)['model']), action, isVersioned: false }
}

const notFound = (): Refusal => new Refusal('missing', 'Resource not found', { code: '404' })

function words(refusal: Refusal): { status: number; body: Json } {
  const { status, body } = errorBody(refusal)
  const { failure, message, details } = refusal
  if (failure === 'auth') {
    return {
      status,
      body: {
        error: {
          code: '401',
          message:
            'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.',
        },
      },
    }
  }
  if (failure === 'missing') return { status, body: { error: { code: details.code ?? 'DeploymentNotFound', message } } }
  if (failure === 'rate') return { status, body: { error: { code: '429', message } } }
  if (failure !== 'filtered') return { status, body }
  const result = { ...RESULTS, violence: { filtered: true, severity: 'high' } }
  return {
    status: 400,
    body: {
      error: {
        message:
          "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: result },
      },
    },
  }
}

export function azure(clock: Clock): Provider {
  const answer = (call: ReceivedCall, behaviour: Parameters<Provider['answer']>[1]): Reply => {
    const found = target(call)
    if (!found) throw notFound()
    const { deployment, action, isVersioned } = found
    if (deployment.includes('missing')) {
      throw new Refusal(
        'missing',
        'The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.',
      )
    }
    const body: unknown = isVersioned && isJson(call.body) ? { model: deployment, ...call.body } : call.body
    if (action === 'embeddings') return embeddingsReply(body)
    if (action === 'responses') {
      const prompt = readResponses(body)
      return responsesReply(speak(prompt, behaviour), prompt, clock.now())
    }
    const prompt = readChat(body, { fields: CHAT_FIELDS, isOriginal: true })
    const includeUsage = object(object(body)['stream_options'])['include_usage'] === true
    return chatReply(speak(prompt, behaviour), prompt, STYLE, includeUsage, clock.now())
  }
  const withId = (reply: Reply, { number }: ReceivedCall): Reply => ({
    ...reply,
    headers: { 'apim-request-id': `azure-fake-${number}`, 'x-ms-region': 'Sweden Central', ...reply.headers },
  })
  return {
    credential: (url) => ({ api_key: AZURE_KEY, config: { endpoint: url } }),
    aside: (call) => {
      const { headers, method, path, query } = call
      if (headers['api-key'] !== AZURE_KEY) throw new Refusal('auth', '')
      const isList = path === '/openai/v1/models' || (path === '/openai/models' && query.has('api-version'))
      if (method === 'GET' && isList) return withId(jsonReply(modelList(['gpt-4o', 'gpt-4o-mini'], 'azure')), call)
      if (method !== 'POST' || !target(call)) throw notFound()
      return undefined
    },
    answer: (call, behaviour) => withId(answer(call, behaviour), call),
    refuse: (refusal, call) => {
      const { status, body } = words(refusal)
      return withId(jsonReply(body, undefined, status), call)
    },
    errorFrame: (refusal) => sse(words(refusal).body),
  }
}
