import type { Prompt, Speech } from '../speech.ts'
import {
  invalid,
  isJson,
  jsonReply,
  list,
  object,
  sse,
  streamReply,
  string,
  type Frame,
  type Json,
  type Reply,
} from '../wire.ts'

/** Reads a request of the responses interface. @throws Refusal */
export function readResponses(body: unknown): Prompt {
  if (!isJson(body) || string(body['model']) === '') throw invalid('you must provide a model parameter')
  const { input, text, tool_choice: choice } = body
  if (input === undefined) throw invalid("Missing required parameter: 'input'.", { param: 'input' })
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : list(input)
  const said = (item: Json): string =>
    typeof item['content'] === 'string'
      ? item['content']
      : list(item['content'])
          .map((part) => string(part['text']))
          .join('')
  const results = items.slice(items.findLastIndex(({ type }) => type !== 'function_call_output') + 1)
  const format = object(object(text)['format'])
  return {
    model: string(body['model']),
    stream: body['stream'] === true,
    text: string(body['instructions']) + items.map(said).join('\n'),
    last: said(items.findLast(({ role }) => role === 'user') ?? {}),
    result: results.length > 0 ? results.map(({ output }) => string(output)).join('; ') : undefined,
    tools: list(body['tools']).map(({ name, parameters }) => ({ name: string(name), schema: parameters })),
    forced: isJson(choice) ? string(choice['name']) : choice === 'required',
    format: format['type'] === 'json_schema' ? { schema: format['schema'] } : 'text',
    maxTokens: Number(body['max_output_tokens'] ?? Infinity),
    thinks: isJson(body['reasoning']),
  }
}

/** A response, whole or as a stream. */
export function responsesReply(speech: Speech, { stream }: Prompt, now: number): Reply {
  const { usage, isCounted, pieces, calls } = speech
  const message = {
    id: 'msg_fake',
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: pieces.join(''), annotations: [], logprobs: [] }],
  }
  const called = calls.map(({ id, name, json }, n) => ({
    id: `fc_fake${n}`,
    type: 'function_call',
    status: 'completed',
    call_id: id ?? `call_fake${n}`,
    name,
    arguments: json,
  }))
  const base = {
    id: 'resp_fake',
    object: 'response',
    created_at: Math.floor(now / 1000),
    model: speech.model,
    error: null,
  }
  const whole = {
    ...base,
    status: 'completed',
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    tools: [],
    tool_choice: 'auto',
    output: [...(pieces.length > 0 ? [message] : []), ...called],
    ...(isCounted && {
      usage: {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cacheRead },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning },
        total_tokens: usage.input + usage.output,
      },
    }),
  }
  if (!stream) return jsonReply(whole, isCounted ? usage : undefined)
  const started = { ...base, status: 'in_progress', output: [], usage: null }
  let sequence = 0
  const event = (type: string, data: Json, more: Partial<Frame> = {}): Frame =>
    sse({ type, sequence_number: sequence++, ...data }, { event: type, ...more })
  const at = { item_id: message.id, output_index: 0, content_index: 0 }
  const part = { type: 'output_text', text: '', annotations: [], logprobs: [] }
  return streamReply([
    event('response.created', { response: started }),
    event('response.in_progress', { response: started }),
    ...(pieces.length === 0
      ? []
      : [
          event('response.output_item.added', {
            output_index: 0,
            item: { ...message, status: 'in_progress', content: [] },
          }),
          event('response.content_part.added', { ...at, part }),
          ...pieces.map((delta) =>
            event('response.output_text.delta', { ...at, delta, logprobs: [] }, { isContent: true }),
          ),
          event('response.output_text.done', { ...at, text: pieces.join(''), logprobs: [] }),
          event('response.content_part.done', { ...at, part: message.content[0] }),
          event('response.output_item.done', { output_index: 0, item: message }),
        ]),
    ...called.flatMap((item, n) => {
      const where = { item_id: item.id, output_index: n + (pieces.length > 0 ? 1 : 0) }
      return [
        event('response.output_item.added', { ...where, item: { ...item, status: 'in_progress', arguments: '' } }),
        event('response.function_call_arguments.delta', { ...where, delta: item.arguments }, { isContent: true }),
        event('response.function_call_arguments.done', { ...where, name: item.name, arguments: item.arguments }),
        event('response.output_item.done', { ...where, item }),
      ]
    }),
    event('response.completed', { response: whole }, isCounted ? { usage } : {}),
  ])
}
