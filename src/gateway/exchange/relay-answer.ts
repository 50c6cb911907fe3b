import { isMap } from '../../base/json.ts'
import { anthropicStop, anthropicUsage } from '../chat/anthropic/read-answer.ts'
import { parseJson, type Json } from '../chat/json.ts'
import { openAiStop, openAiUsage } from '../chat/openai/read-answer.ts'
import { skipValue } from '../relay/body.ts'
import { valueAt } from '../relay/frames.ts'
import { encodeVectors, isVectors, type Encoding } from './vectors.ts'
import type { AnswerFacts, InferenceRequest, JsonAnswer } from './exchange.ts'
import { brokenFault, eventFault, type FaultView } from './faults.ts'
import { plainChoices } from './mistral-answer.ts'
import { readResponse } from './responses-answer.ts'

/**
 * A whole answer in the client's dialect: the same bytes, but for what is Mistral's own, and vectors in another encoding.
 * @throws UpstreamFault for what is none
 */
export function readRelayed(body: Buffer, request: InferenceRequest, isMistral: boolean, view: FaultView): JsonAnswer {
  const facts = request.surface === 'embeddings' ? vectorFacts(body, encodingOf(request)) : undefined
  return facts ? { body, facts } : readParsed(body, request, isMistral, view)
}

function readParsed(body: Buffer, request: InferenceRequest, isMistral: boolean, view: FaultView): JsonAnswer {
  const answer = parseJson(body.toString('utf8'))
  const facts = answer && factsOf(answer, request)
  if (!answer || !facts) {
    const told = answer && toldBy(answer, request)
    if (isMap(answer?.['error']) || typeof answer?.['error'] === 'string') {
      throw eventFault(body.toString('utf8'), view, undefined, told)
    }
    throw brokenFault('upstream_invalid_response', 'the provider sent an answer that is none', told)
  }
  if (request.surface === 'responses' && readResponse(answer)?.hasFailed) {
    throw eventFault(body.toString('utf8'), view, undefined, facts)
  }
  const isChanged =
    (isMistral && request.surface === 'chat' && plainChoices(answer)) ||
    (request.surface === 'embeddings' && encodeVectors(answer, encodingOf(request)))
  return { body: isChanged ? Buffer.from(JSON.stringify(answer)) : body, facts }
}

/** Of vectors that need no other encoding: millions of digits are not parsed for one count of tokens. */
function vectorFacts(body: Buffer, encoding: Encoding): AnswerFacts | undefined {
  const raw = body.toString('latin1').trimEnd()
  const [vector, usage, model] = ['embedding"', 'usage"', 'model"'].map((name) => valueAt(raw, name))
  if (vector === undefined || usage === undefined || model === undefined || !raw.endsWith('}')) return undefined
  if (raw[vector] !== (encoding === 'base64' ? '"' : '[') || raw[usage] !== '{' || raw[model] !== '"') return undefined
  const valueOf = (start: number): unknown => JSON.parse(body.toString('utf8', start, skipValue(body, start)))
  try {
    return { ...NOTHING_SAID, usage: openAiUsage(valueOf(usage)), responseModel: String(valueOf(model)) }
  } catch {
    return undefined // parsing the whole will tell
  }
}

/** Undefined for what is no answer of the surface. Text is measured only where estimates need it. */
function factsOf(answer: Json, request: InferenceRequest): AnswerFacts | undefined {
  const told = toldBy(answer, request)
  switch (request.surface) {
    case 'chat': {
      const [choice]: unknown[] = Array.isArray(answer['choices']) ? answer['choices'] : []
      if (!isMap(choice) || !isMap(choice['message'])) return undefined
      const { finish_reason: reason } = choice
      return {
        ...told,
        finishReason: typeof reason === 'string' ? openAiStop(reason) : undefined,
        textBytes: told.usage ? 0 : textBytes(answer['choices']),
      }
    }
    case 'messages': {
      if (request.countOnly) return typeof answer['input_tokens'] === 'number' ? NOTHING_SAID : undefined
      if (!Array.isArray(answer['content'])) return undefined
      const { stop_reason: reason, content } = answer
      return {
        ...told,
        finishReason: typeof reason === 'string' ? anthropicStop(reason) : undefined,
        textBytes: textBytes(content),
      }
    }
    case 'responses': {
      const response = readResponse(answer)
      return (
        response && {
          ...told,
          usage: response.usage,
          finishReason: response.finishReason,
          textBytes: textBytes(answer['output']),
        }
      )
    }
    case 'embeddings':
      return isVectors(answer) ? told : undefined
  }
}

/** What stands beside what was said, in an answer that is none too: tokens that were reported count. Contract: gateway.md 7.2. */
function toldBy({ model, id, usage, x_groq: groq }: Json, { surface }: InferenceRequest): AnswerFacts {
  const openAi = openAiUsage(usage) ?? openAiUsage(isMap(groq) ? groq['usage'] : undefined)
  return {
    ...NOTHING_SAID,
    usage: surface === 'messages' ? anthropicUsage(usage) : openAi,
    responseModel: typeof model === 'string' ? model : undefined,
    responseId: typeof id === 'string' ? id : undefined,
  }
}

const NOTHING_SAID: AnswerFacts = {
  usage: undefined,
  finishReason: undefined,
  responseModel: undefined,
  responseId: undefined,
  textBytes: 0,
}

const SAID: ReadonlySet<string> = new Set([
  'content',
  'text',
  'thinking',
  'reasoning',
  'reasoning_content',
  'refusal',
  'arguments',
])

/** Of what a model said, wherever it stands. */
function textBytes(said: unknown, isText = false): number {
  if (typeof said === 'string') return isText ? Buffer.byteLength(said) : 0
  if (Array.isArray(said)) return said.reduce<number>((sum, each) => sum + textBytes(each), 0)
  if (!isMap(said)) return 0
  return Object.entries(said).reduce(
    (sum, [name, value]) =>
      sum + (name === 'input' ? Buffer.byteLength(JSON.stringify(value)) : textBytes(value, SAID.has(name))),
    0,
  )
}

const encodingOf = ({ body, members }: InferenceRequest): Encoding => {
  const member = members.get('encoding_format')
  return member && body.toString('latin1', member.start, member.end) === '"base64"' ? 'base64' : 'float'
}
