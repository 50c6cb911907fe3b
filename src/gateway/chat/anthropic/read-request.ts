import { effortOf } from '../effort.ts'
import {
  FAMILIES,
  UnsayableError,
  type ChatRequest,
  type Drop,
  type Effort,
  type Part,
  type ReasoningPart,
  type Seen,
  type TextPart,
  type ToolChoice,
  type Turn,
} from '../form.ts'
import { marked, parseBody } from '../parse.ts'
import { mapText, textsAt } from '../raw-json.ts'
import { arrangeTurns } from '../turns.ts'
import { unsigned } from './unsigned.ts'
import { anthropicRequest, type AnthropicContent, type AnthropicRequest } from './request-schema.ts'

/**
 * An Anthropic messages request in the inner form. Contract: gateway.md 5.3.
 * @param source what the body was parsed from: the inputs of calls stay as they stand there
 * @throws UnsayableError
 */
export function readAnthropicRequest(body: unknown, drop: Drop, source: string | Buffer = ''): ChatRequest {
  const request = parseBody(anthropicRequest, body, drop)
  refuseUnsayable(request)
  const { system, turns } = readMessages(request, drop, source)
  const { tool_choice: choice, output_config: output, metadata } = request
  const effort = effortIn(request)
  return {
    stream: request.stream ?? false,
    includeUsage: true,
    system,
    turns: arrangeTurns(turns),
    tools: (request.tools ?? []).map(({ name, description, input_schema: parameters, strict, cache_control }) => ({
      name,
      ...(description !== undefined && { description }),
      parameters,
      ...(strict !== undefined && { strict }),
      ...marked(cache_control),
    })),
    ...(choice && { choice: choiceOf(choice) }),
    singleCall:
      choice !== undefined && 'disable_parallel_tool_use' in choice && choice.disable_parallel_tool_use === true,
    maxTokens: request.max_tokens,
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.top_p !== undefined && { topP: request.top_p }),
    ...(request.top_k !== undefined && { topK: request.top_k }),
    stop: request.stop_sequences ?? [],
    ...(output?.format && { format: { type: 'schema', name: 'answer', schema: output.format.schema } }),
    ...(effort !== undefined && { effort }),
    ...(metadata?.user_id !== undefined && { user: metadata.user_id }),
  }
}

function refuseUnsayable({ mcp_servers: servers, thread, compaction }: AnthropicRequest): void {
  if (servers?.length) {
    throw new UnsayableError('unsupported_parameter', 'mcp_servers', 'this model has no tools that the provider runs')
  }
  if (thread !== undefined) {
    throw new UnsayableError('unsupported_parameter', 'thread', 'this model holds no conversation: send all of it', {
      error_code: 'thread_unsupported_request', // the official client does so then
    })
  }
  if (compaction !== undefined) {
    throw new UnsayableError('unsupported_parameter', 'compaction', 'this model does not compact conversations')
  }
}

function readMessages(
  { system, messages }: AnthropicRequest,
  drop: Drop,
  source: string | Buffer,
): { system: TextPart[]; turns: Turn[] } {
  const inputs = textsAt(source, ['messages', '*', 'content', '*', 'input'])
  const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))
  const inputOf = new Map(inputs.map((text, i) => [blocks[i], text]))
  const later = messages.flatMap((message) => (message.role === 'system' ? texts(message.content ?? []) : []))
  if (later.length > 0) drop('messages.system_position')
  return {
    system: [...texts(system ?? []), ...later].filter(({ text }) => text !== ''),
    turns: messages.flatMap((message) =>
      message.role === 'system' ? [] : [{ role: message.role, parts: partsOf(message.content, inputOf) }],
    ),
  }
}

const texts = (content: NonNullable<AnthropicRequest['system']>): TextPart[] =>
  typeof content === 'string'
    ? [{ kind: 'text', text: content }]
    : content.map(({ text, cache_control }) => ({ kind: 'text', text, ...marked(cache_control) }))

function partsOf(content: AnthropicContent, inputOf: ReadonlyMap<unknown, string | undefined>): Part[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  return content.map((block): Part => {
    switch (block.type) {
      case 'text':
      case 'image':
      case 'document':
        return seen(block)
      case 'tool_use':
        return {
          kind: 'call',
          id: block.id,
          name: block.name,
          arguments: mapText(block.input, inputOf.get(block)),
          ...marked(block.cache_control),
        }
      case 'tool_result':
        return {
          kind: 'result',
          id: block.tool_use_id,
          name: '',
          content: typeof block.content === 'string' ? texts(block.content) : (block.content ?? []).map(seen),
          isError: block.is_error ?? false,
          ...marked(block.cache_control),
        }
      case 'thinking':
        return thoughtOf(block.thinking, block.signature)
      case 'redacted_thinking':
        return { kind: 'reasoning', family: 'claude', text: '', sealed: block.data }
    }
  })
}

/** Thoughts of others have no signature but their family's name, as our answers gave it. */
function thoughtOf(text: string, signature: string): ReasoningPart {
  const family = FAMILIES.find((each) => signature === unsigned(each))
  return family ? { kind: 'reasoning', family, text } : { kind: 'reasoning', family: 'claude', text, signature }
}

type SeenBlock = Extract<Exclude<AnthropicContent, string>[number], { type: 'text' | 'image' | 'document' }>

function seen(block: SeenBlock): Seen {
  const mark = marked(block.cache_control)
  if (block.type === 'text') return { kind: 'text', text: block.text, ...mark }
  if (block.type === 'document')
    return { kind: 'document', name: block.title ?? 'document.pdf', data: block.source.data, ...mark }
  const { source } = block
  return {
    kind: 'image',
    source: source.type === 'url' ? { url: source.url } : { mediaType: source.media_type, data: source.data },
    ...mark,
  }
}

function choiceOf(choice: NonNullable<AnthropicRequest['tool_choice']>): ToolChoice {
  if (choice.type === 'tool') return { name: choice.name }
  return choice.type === 'any' ? 'required' : choice.type
}

function effortIn({ thinking, output_config: output }: AnthropicRequest): Effort | undefined {
  if (thinking?.type === 'disabled') return 'none'
  if (thinking?.type === 'enabled') return effortOf(thinking.budget_tokens)
  return output?.effort ?? (thinking ? 'high' : undefined)
}
