import type { Prompt } from '../speech.ts'
import { looseObject } from '../speech.ts'
import { invalid, isJson, list, object, string, unknownName, type Json, type Refusal, words } from '../wire.ts'

/** Fields of a chat request that OpenAI knows. */
export const CHAT_FIELDS = words(`
  model messages stream stream_options tools tool_choice parallel_tool_calls functions function_call
  response_format max_tokens max_completion_tokens temperature top_p n stop seed frequency_penalty
  presence_penalty logprobs top_logprobs logit_bias user store metadata reasoning_effort safety_identifier
  prompt_cache_key prompt_cache_retention modalities audio prediction service_tier verbosity
  web_search_options
`)

/** How strict a member of the family is. */
export interface ChatRules {
  /** Known top-level fields; any when absent. */
  readonly fields?: readonly string[]
  /** Known fields of a message by role; any when absent. */
  readonly messageFields?: Readonly<Record<string, readonly string[]>>
  readonly refuseUnknown?: (name: string, value: unknown) => Refusal
  /** Checks what only the original checks: the word JSON, closed schemas, fields of models that think. */
  readonly isOriginal?: boolean
  readonly checkCallId?: (id: string) => void
}

const unknownArgument = (name: string): Refusal => invalid(`Unrecognized request argument supplied: ${name}`)

/** Reads and judges a chat request. @throws Refusal */
export function readChat(body: unknown, rules: ChatRules): Prompt {
  if (!isJson(body)) throw invalid('We could not parse the JSON body of your request.')
  const { fields, refuseUnknown = unknownArgument } = rules
  const unknown = fields && unknownName(body, fields)
  if (unknown !== undefined) throw refuseUnknown(unknown, body[unknown])
  const model = string(body['model'])
  if (model === '') throw invalid('you must provide a model parameter')
  const messages = list(body['messages'])
  if (messages.length === 0) {
    throw invalid("Missing required parameter: 'messages'.", { param: 'messages', code: 'missing_required_parameter' })
  }
  checkMessages(messages, rules)
  checkOptions(body, rules)
  if (rules.isOriginal) checkOriginal(body, messages, model)
  const { tool_choice: choice, response_format: format } = body
  const named = object(object(choice)['function'])['name']
  const results = messages.slice(messages.findLastIndex(({ role }) => role !== 'tool') + 1)
  return {
    model,
    stream: body['stream'] === true,
    text: messages.map((message) => textOf(message) + JSON.stringify(message['tool_calls'] ?? '')).join('\n'),
    last: textOf(messages.findLast(({ role }) => role === 'user') ?? {}),
    result: results.length > 0 ? results.map(textOf).join('; ') : undefined,
    tools: list(body['tools']).map((tool) => ({
      name: string(object(tool['function'])['name']),
      schema: object(tool['function'])['parameters'],
    })),
    forced: typeof named === 'string' ? named : choice === 'required' || choice === 'any',
    format: formatOf(object(format)),
    maxTokens: Number(body['max_completion_tokens'] ?? body['max_tokens'] ?? Infinity),
    thinks: typeof body['reasoning_effort'] === 'string' && body['reasoning_effort'] !== 'none',
  }
}

export function textOf({ content }: Json): string {
  if (typeof content === 'string') return content
  return list(content)
    .map((part) => string(part['text']) + string(part['refusal']))
    .join('')
}

function formatOf({ type, json_schema: schema }: Json): Prompt['format'] {
  if (type === 'json_object') return 'json'
  return type === 'json_schema' ? { schema: object(schema)['schema'] } : 'text'
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

/** Each call has its results right behind it, each result its call right before it. */
function checkMessages(messages: readonly Json[], { messageFields, refuseUnknown, checkCallId }: ChatRules): void {
  let open: string[] = []
  for (const [i, message] of messages.entries()) {
    const role = string(message['role'])
    if (!ROLES.includes(role)) throw invalid(`Invalid value: '${role}'.`, { param: `messages[${i}].role` })
    const unknown = messageFields && unknownName(message, messageFields[role] ?? [])
    if (unknown !== undefined) throw (refuseUnknown ?? unknownArgument)(`messages.${i}.${unknown}`, message[unknown])
    if (role === 'tool') {
      const id = string(message['tool_call_id'])
      checkCallId?.(id)
      if (!open.includes(id)) {
        throw invalid(
          "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
          { param: `messages.[${i}].role` },
        )
      }
      open = open.filter((each) => each !== id)
      continue
    }
    checkAnswered(open, i)
    const calls = list(message['tool_calls'])
    for (const call of calls) checkCall(call, i, checkCallId)
    open = calls.map(({ id }) => string(id))
    checkContent(message, role, i)
  }
  checkAnswered(open, messages.length)
}

function checkAnswered(open: readonly string[], i: number): void {
  if (open.length === 0) return
  throw invalid(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`,
    { param: `messages.[${i}].role` },
  )
}

function checkCall(call: Json, i: number, checkCallId: ChatRules['checkCallId']): void {
  const { name, arguments: args } = object(call['function'])
  if (string(call['id']) === '' || call['type'] !== 'function' || string(name) === '' || typeof args !== 'string') {
    throw invalid(`Invalid tool call in messages[${i}].`, { param: `messages[${i}].tool_calls` })
  }
  checkCallId?.(string(call['id']))
}

const PARTS = ['text', 'image_url', 'input_audio', 'file', 'refusal', 'thinking', 'document_url']

function checkContent(message: Json, role: string, i: number): void {
  const { content } = message
  const mayBeAbsent = role === 'assistant' && (message['tool_calls'] !== undefined || message['refusal'] !== undefined)
  if (typeof content !== 'string' && !Array.isArray(content) && !mayBeAbsent) {
    throw invalid(`Invalid value for 'content': expected a string, got null.`, { param: `messages.[${i}].content` })
  }
  for (const [j, part] of list(content).entries()) {
    if (!PARTS.includes(string(part['type']))) {
      throw invalid(`Invalid value: '${string(part['type'])}'.`, { param: `messages[${i}].content[${j}].type` })
    }
  }
}

function checkOptions(body: Json, { isOriginal }: ChatRules): void {
  const tools = list(body['tools'])
  if (body['stream_options'] !== undefined && body['stream'] !== true) {
    throw invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: 'stream_options',
    })
  }
  if (Array.isArray(body['tools']) && tools.length === 0 && isOriginal) {
    throw invalid("Invalid 'tools': empty array. Expected an array with minimum length 1.", { param: 'tools' })
  }
  if (body['tool_choice'] !== undefined && tools.length === 0 && isOriginal) {
    throw invalid("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", {
      param: 'tool_choice',
    })
  }
  for (const tool of tools) {
    if (tool['type'] !== 'function' || !/^[\w-]{1,64}$/.test(string(object(tool['function'])['name']))) {
      throw invalid("Invalid 'tools[0].function.name'.", { param: 'tools[0].function.name' })
    }
  }
  if (Array.isArray(body['stop']) && body['stop'].length > 4) {
    throw invalid("Invalid 'stop': array too long. Expected an array with maximum length 4.", { param: 'stop' })
  }
}

function checkOriginal(body: Json, messages: readonly Json[], model: string): void {
  const format = object(body['response_format'])
  if (format['type'] === 'json_object' && !/json/i.test(messages.map(textOf).join(' '))) {
    throw invalid(
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
      {
        param: 'messages',
      },
    )
  }
  const { strict, schema } = object(format['json_schema'])
  const loose = strict === true ? looseObject(schema) : undefined
  if (loose !== undefined) {
    throw invalid(`Invalid schema for response_format: 'additionalProperties' is required to be false in ${loose}.`, {
      param: 'response_format',
    })
  }
  if (!/^(o\d|gpt-5)/.test(model)) return
  if (body['max_tokens'] !== undefined) {
    throw invalid(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      { param: 'max_tokens', code: 'unsupported_parameter' },
    )
  }
  if (body['temperature'] !== undefined && body['temperature'] !== 1) {
    throw invalid("Unsupported value: 'temperature' does not support this value with this model.", {
      param: 'temperature',
      code: 'unsupported_value',
    })
  }
}
