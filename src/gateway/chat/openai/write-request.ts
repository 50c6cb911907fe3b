import { dataUrl } from '../data-url.ts'
import { knownEffort } from '../effort.ts'
import {
  hasCacheMark,
  UnsayableError,
  type ChatRequest,
  type Drop,
  type Part,
  type ResultPart,
  type TextPart,
  type Turn,
} from '../form.ts'
import { openAiCallId, openAiUser } from '../ids.ts'
import { optional, type Json } from '../json.ts'
import type { Target } from '../target.ts'

const MAX_STOPS = 4

/** A chat completion request without `model` and `stream`. Contract: gateway.md 5.3. @throws UnsayableError */
export function writeOpenAiRequest(request: ChatRequest, target: Target, drop: Drop): Json {
  const { temperature, topP, stop, format, choice, user, seed } = request
  if (request.topK !== undefined) drop('top_k')
  if (stop.length > MAX_STOPS) throw new UnsayableError('invalid_value', 'stop_sequences', `at most ${MAX_STOPS} here`)
  if (hasCacheMark(request)) drop('cache_control')
  const system = request.system.map(({ text }) => text).join('\n\n')
  const sampled = { temperature, top_p: topP }
  if (!target.sampling) for (const [field, value] of Object.entries(sampled)) if (value !== undefined) drop(field)
  return {
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...request.turns.flatMap(messagesOf)],
    ...(request.tools.length > 0 && {
      tools: request.tools.map(({ name, description, parameters, strict }) => ({
        type: 'function',
        function: { name, ...optional({ description }), parameters, ...optional({ strict }) },
      })),
      ...(choice !== undefined && {
        tool_choice: typeof choice === 'string' ? choice : { type: 'function', function: choice },
      }),
      ...(request.singleCall && { parallel_tool_calls: false }),
    }),
    ...(request.maxTokens !== undefined && { [target.maxTokensField]: request.maxTokens }),
    ...(target.sampling && optional(sampled)),
    ...(stop.length > 0 && { stop }),
    ...(format && { response_format: formatOf(format) }),
    ...effortOf(request, target, drop),
    ...optional({
      user: user === undefined ? undefined : openAiUser(user),
      seed,
      frequency_penalty: request.frequencyPenalty,
      presence_penalty: request.presencePenalty,
    }),
  }
}

function formatOf(format: NonNullable<ChatRequest['format']>): Json {
  if (format.type === 'json') return { type: 'json_object' }
  const { name, schema, strict } = format
  return { type: 'json_schema', json_schema: { name, schema, ...optional({ strict }) } }
}

function effortOf({ effort }: ChatRequest, { reasoning, efforts }: Target, drop: Drop): Json {
  if (effort === undefined) return {}
  const known = reasoning === 'none' ? undefined : knownEffort(effort, efforts)
  if (known !== undefined) return { reasoning_effort: known }
  if (effort !== 'none' || reasoning !== 'none') drop('reasoning_effort')
  return {}
}

function messagesOf({ role, parts }: Turn): Json[] {
  if (role === 'assistant') return [assistantMessage(parts)]
  const results = parts.filter((part) => part.kind === 'result')
  const rest = [
    // A tool message holds text only: what a result shows follows it.
    ...results.flatMap(({ content }) => content.filter((part) => part.kind !== 'text')),
    ...parts.filter((part) => part.kind !== 'result'),
  ]
  return [...results.map(resultMessage), ...(rest.length > 0 ? [{ role: 'user', content: contentOf(rest) }] : [])]
}

function assistantMessage(parts: readonly Part[]): Json {
  const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('')
  const reasoning = parts.flatMap((part) => (part.kind === 'reasoning' && part.family === 'openai' ? [part.text] : []))
  const calls = parts.flatMap((part) =>
    part.kind === 'call'
      ? [{ id: openAiCallId(part.id), type: 'function', function: { name: part.name, arguments: part.arguments } }]
      : [],
  )
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

function resultMessage({ id, content, isError }: ResultPart): Json {
  const text = content.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n')
  return { role: 'tool', tool_call_id: openAiCallId(id), content: isError ? `Error: ${text}` : text }
}

const isText = (part: Part): part is TextPart => part.kind === 'text'

function contentOf(parts: readonly Part[]): string | Json[] {
  const [first, ...others] = parts
  if (first && isText(first) && others.length === 0) return first.text
  return parts.flatMap((part): Json[] => {
    switch (part.kind) {
      case 'text':
        return [{ type: 'text', text: part.text }]
      case 'image':
        return [{ type: 'image_url', image_url: { url: dataUrl(part.source) } }]
      case 'document': {
        const data = dataUrl({ mediaType: 'application/pdf', data: part.data })
        return [{ type: 'file', file: { filename: part.name, file_data: data } }]
      }
      case 'audio':
        return [{ type: 'input_audio', input_audio: { data: part.data, format: part.format } }]
      default:
        return []
    }
  })
}
