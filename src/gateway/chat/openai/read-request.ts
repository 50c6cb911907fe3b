import { isMap, jsonOf } from '../../../base/json.ts'
import { mediaOf } from '../data-url.ts'
import {
  UnsayableError,
  type ChatRequest,
  type Drop,
  type OutputFormat,
  type Part,
  type Seen,
  type TextPart,
  type ToolChoice,
  type Turn,
} from '../form.ts'
import { marked, parseBody } from '../parse.ts'
import { arrangeTurns } from '../turns.ts'
import { openAiRequest, type OpenAiMessage, type OpenAiRequest } from './request-schema.ts'

/**
 * An OpenAI chat completion request in the inner form. Contract: gateway.md 5.3.
 * @throws UnsayableError for what is malformed, or would mean something else elsewhere.
 */
export function readOpenAiRequest(body: unknown, drop: Drop): ChatRequest {
  const request = parseBody(openAiRequest, body, drop)
  refuseUnsayable(request)
  const { system, turns } = readMessages(request.messages, drop)
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  const user = request.safety_identifier ?? request.user
  const choice = choiceOf(request.tool_choice)
  const format = formatOf(request.response_format)
  return {
    stream: request.stream ?? false,
    includeUsage: request.stream_options?.include_usage ?? false,
    system,
    turns: arrangeTurns(turns),
    tools: (request.tools ?? []).map(({ function: { name, description, parameters, strict }, cache_control }) => ({
      name,
      ...(description !== undefined && { description }),
      parameters: parameters ?? { type: 'object', properties: {} },
      ...(strict !== undefined && { strict }),
      ...marked(cache_control),
    })),
    ...(choice !== undefined && { choice }),
    singleCall: request.parallel_tool_calls === false,
    ...(maxTokens !== undefined && { maxTokens }),
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.top_p !== undefined && { topP: request.top_p }),
    stop: typeof request.stop === 'string' ? [request.stop] : (request.stop ?? []),
    ...(format && { format }),
    ...(request.reasoning_effort !== undefined && { effort: request.reasoning_effort }),
    ...(user !== undefined && { user }),
    ...(request.seed !== undefined && { seed: request.seed }),
    ...(request.frequency_penalty !== undefined && { frequencyPenalty: request.frequency_penalty }),
    ...(request.presence_penalty !== undefined && { presencePenalty: request.presence_penalty }),
  }
}

function refuseUnsayable({ n, messages, functions, function_call: functionCall }: OpenAiRequest): void {
  if (n !== undefined && n !== 1) throw new UnsayableError('unsupported_parameter', 'n', 'only n = 1 can be translated')
  const called = messages.findIndex((message) => 'function_call' in message && message.function_call !== undefined)
  for (const [param, isGiven] of [
    ['functions', functions !== undefined],
    ['function_call', functionCall !== undefined],
    [`messages[${called}].function_call`, called >= 0],
  ] as const) {
    if (isGiven) throw new UnsayableError('unsupported_parameter', param, `use tools instead of ${param}`)
  }
}

function readMessages(messages: readonly OpenAiMessage[], drop: Drop): { system: TextPart[]; turns: Turn[] } {
  const system: TextPart[] = []
  const turns: Turn[] = []
  for (const [i, message] of messages.entries()) {
    const param = `messages[${i}]`
    if (message.role !== 'tool' && message.name !== undefined) drop('messages.name')
    switch (message.role) {
      case 'user':
        turns.push({ role: 'user', parts: markedLast(userParts(message.content, param, drop), message) })
        break
      case 'assistant':
        turns.push({ role: 'assistant', parts: markedLast(assistantParts(message, param), message) })
        break
      case 'tool': {
        const { tool_call_id: id, content: shown, cache_control } = message
        const content =
          typeof shown === 'string'
            ? texts(shown)
            : shown.map((part, at) => seen(part, `${param}.content[${at}]`, drop))
        const result = { kind: 'result', id, name: '', content, isError: false } as const
        turns.push({ role: 'user', parts: [{ ...result, ...marked(cache_control) }] })
        break
      }
      default:
        if (turns.length > 0) drop('messages.system_position')
        system.push(...markedLast(texts(message.content), message))
    }
  }
  return { system: system.filter(({ text }) => text !== ''), turns }
}

/** Some clients mark a message, not its last part. */
function markedLast<P extends Part>(parts: P[], { cache_control: mark }: Pick<OpenAiMessage, 'cache_control'>): P[] {
  const last = mark ? parts.findLastIndex(isMarkable) : -1
  return parts.map((part, i) => (i === last ? { ...part, ...marked(mark) } : part))
}

const isMarkable = (part: Part): boolean =>
  part.kind !== 'audio' && part.kind !== 'reasoning' && (part.kind !== 'text' || part.text !== '')

const texts = (content: Extract<OpenAiMessage, { role: 'system' | 'developer' }>['content']): TextPart[] =>
  typeof content === 'string'
    ? [{ kind: 'text', text: content }]
    : content.map(({ text, cache_control }) => ({ kind: 'text', text, ...marked(cache_control) }))

function userParts(content: Extract<OpenAiMessage, { role: 'user' }>['content'], param: string, drop: Drop): Part[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  return content.map((part, i): Part => {
    if (part.type === 'input_audio') return { kind: 'audio', ...part.input_audio }
    return seen(part, `${param}.content[${i}]`, drop)
  })
}

type SeenPart = Exclude<Extract<OpenAiMessage, { role: 'tool' }>['content'], string>[number]

function seen(part: SeenPart, place: string, drop: Drop): Seen {
  const mark = marked(part.cache_control)
  switch (part.type) {
    case 'text':
      return { kind: 'text', text: part.text, ...mark }
    case 'image_url':
      if (part.image_url.detail !== undefined && part.image_url.detail !== 'auto') drop('messages.image_url.detail')
      return { kind: 'image', source: mediaOf(part.image_url.url, place), ...mark }
    case 'file':
      return { kind: 'document', ...pdf(part.file, place), ...mark }
  }
}

function pdf(
  { file_data: data, filename = 'document.pdf' }: { file_data?: string | undefined; filename?: string | undefined },
  param: string,
): { name: string; data: string } {
  const source = data === undefined ? undefined : mediaOf(data, param)
  if (source && 'data' in source && source.mediaType === 'application/pdf') return { name: filename, data: source.data }
  throw new UnsayableError('unsupported_content', param, 'a file is a PDF as a data URL in file_data')
}

function assistantParts(message: Extract<OpenAiMessage, { role: 'assistant' }>, param: string): Part[] {
  const { content, refusal, tool_calls: calls, reasoning_content: reasoning, thinking_blocks: blocks } = message
  const thoughts = (blocks ?? []).map((block): Part => {
    if (block.type === 'redacted_thinking') return { kind: 'reasoning', family: 'claude', text: '', sealed: block.data }
    const { thinking: text, signature } = block
    return { kind: 'reasoning', family: 'claude', text, ...(signature !== undefined && { signature }) }
  })
  if (thoughts.length === 0 && reasoning) thoughts.push({ kind: 'reasoning', family: 'openai', text: reasoning })
  const spoken =
    typeof content === 'string' ? [content] : (content ?? []).map((part) => ('text' in part ? part.text : part.refusal))
  return [
    ...thoughts,
    ...[...spoken, refusal ?? ''].map((text): Part => ({ kind: 'text', text })),
    ...(calls ?? []).map(
      ({ id, function: { name, arguments: text }, extra_content: extra, cache_control }, i): Part => {
        const signature = extra?.google?.thought_signature
        return {
          kind: 'call',
          id,
          name,
          arguments: argumentsOf(text, `${param}.tool_calls[${i}].function.arguments`),
          ...(signature !== undefined && { signature }),
          ...marked(cache_control),
        }
      },
    ),
  ]
}

function argumentsOf(text: string, param: string): string {
  if (text.trim() === '') return '{}'
  if (isMap(jsonOf(text))) return text
  throw new UnsayableError('invalid_value', param, 'the arguments of a call are a JSON object as text')
}

function choiceOf(choice: OpenAiRequest['tool_choice']): ToolChoice | undefined {
  if (choice === undefined) return undefined
  return typeof choice === 'string' ? choice : { name: choice.function.name }
}

function formatOf(format: OpenAiRequest['response_format']): OutputFormat | undefined {
  if (format?.type === 'json_object') return { type: 'json' }
  if (format?.type !== 'json_schema') return undefined
  const { name, schema = {}, strict } = format.json_schema
  return { type: 'schema', name, schema, ...(strict !== undefined && { strict }) }
}
