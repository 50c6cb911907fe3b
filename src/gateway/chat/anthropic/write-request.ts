import { claudeThinking } from '../claude-thinking.ts'
import {
  JSON_LINE,
  UnsayableError,
  type CacheMark,
  type ChatRequest,
  type Drop,
  type Part,
  type Tool,
  type ToolChoice,
} from '../form.ts'
import { claudeCallId } from '../ids.ts'
import type { Json } from '../json.ts'
import { RawJson } from '../raw-json.ts'
import { isSaid, isSigned, type Target } from '../target.ts'

/** A messages request without `model` and `stream`. Contract: gateway.md 5.3. @throws UnsayableError */
export function writeAnthropicRequest(request: ChatRequest, target: Target, drop: Drop): Json {
  for (const field of ['seed', 'frequencyPenalty', 'presencePenalty'] as const) {
    if (request[field] !== undefined) drop(FIELD[field])
  }
  const { format, user, choice } = request
  const system = [
    ...request.system.filter(isSaid).map(({ text, cache }) => ({ type: 'text', text, ...mark(cache) })),
    ...(format?.type === 'json' ? [{ type: 'text', text: JSON_LINE }] : []),
  ]
  const maxTokens = request.maxTokens ?? target.defaultMaxTokens
  const { thinking, effort } = claudeThinking(request, target, maxTokens, drop)
  const output = {
    ...(effort !== undefined && { effort }),
    ...(format?.type === 'schema' && { format: { type: 'json_schema', schema: format.schema } }),
  }
  const toolChoice = request.tools.length > 0 ? choiceOf(choice, request.singleCall) : undefined
  return {
    max_tokens: maxTokens,
    ...(system.length > 0 && { system }),
    messages: request.turns.map(({ role, parts }) => ({ role, content: parts.filter(isSaid).flatMap(blockOf) })),
    ...(request.tools.length > 0 && { tools: request.tools.map(toolOf) }),
    ...(toolChoice && { tool_choice: toolChoice }),
    ...sampling(request, target.sampling && !thinking, drop),
    ...(request.stop.length > 0 && { stop_sequences: request.stop }),
    ...(thinking && { thinking }),
    ...(Object.keys(output).length > 0 && { output_config: output }),
    ...(user !== undefined && { metadata: { user_id: user } }),
  }
}

const FIELD = { seed: 'seed', frequencyPenalty: 'frequency_penalty', presencePenalty: 'presence_penalty' } as const

/** Claude takes none while it thinks. */
function sampling({ temperature, topP, topK }: ChatRequest, isTaken: boolean, drop: Drop): Json {
  const fields = Object.entries({ temperature, top_p: topP, top_k: topK }).filter(([, value]) => value !== undefined)
  if (!isTaken) fields.forEach(([field]) => drop(field))
  if (!isTaken || fields.length === 0) return {}
  if (temperature === undefined || temperature <= 1) return Object.fromEntries(fields)
  drop('temperature')
  return { ...Object.fromEntries(fields), temperature: 1 }
}

function blockOf(part: Part): Json[] {
  switch (part.kind) {
    case 'text':
      return [{ type: 'text', text: part.text, ...mark(part.cache) }]
    case 'image': {
      const { source } = part
      const written =
        'url' in source
          ? { type: 'url', url: source.url }
          : { type: 'base64', media_type: source.mediaType, data: source.data }
      return [{ type: 'image', source: written, ...mark(part.cache) }]
    }
    case 'document': {
      const source = { type: 'base64', media_type: 'application/pdf', data: part.data }
      return [{ type: 'document', source, title: part.name, ...mark(part.cache) }]
    }
    case 'audio':
      throw new UnsayableError('unsupported_content', 'messages', 'this model takes no audio')
    case 'reasoning':
      if (part.family !== 'claude' || !isSigned(part)) return []
      if (part.sealed !== undefined) return [{ type: 'redacted_thinking', data: part.sealed }]
      return [{ type: 'thinking', thinking: part.text, signature: part.signature }]
    case 'call': {
      const input = new RawJson(part.arguments)
      return [{ type: 'tool_use', id: claudeCallId(part.id), name: part.name, input, ...mark(part.cache) }]
    }
    case 'result':
      return [
        {
          type: 'tool_result',
          tool_use_id: claudeCallId(part.id),
          content: part.content.filter(isSaid).flatMap(blockOf),
          ...(part.isError && { is_error: true }),
          ...mark(part.cache),
        },
      ]
  }
}

const toolOf = ({ name, description, parameters, strict, cache }: Tool): Json => ({
  name,
  ...(description !== undefined && { description }),
  input_schema: parameters,
  ...(strict !== undefined && { strict }),
  ...mark(cache),
})

function choiceOf(choice: ToolChoice | undefined, singleCall: boolean): Json | undefined {
  if (choice === 'none') return { type: 'none' }
  if (choice === undefined && !singleCall) return undefined
  const single = singleCall && { disable_parallel_tool_use: true }
  if (typeof choice === 'object') return { type: 'tool', name: choice.name, ...single }
  return { type: choice === 'required' ? 'any' : 'auto', ...single }
}

const mark = (cache: CacheMark | undefined): Json => (cache ? { cache_control: { type: 'ephemeral', ...cache } } : {})
