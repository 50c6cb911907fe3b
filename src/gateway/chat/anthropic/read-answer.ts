import * as z from 'zod'
import { isMap, jsonOf } from '../../../base/json.ts'
import { mapText, textsAt } from '../raw-json.ts'
import { AnswerError, NO_USAGE, startOf, type ChatEvent, type StopReason, type Usage } from '../events.ts'

const count = z.int().nonnegative().nullish()

const usageSchema = z.object({
  input_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  cache_creation: z.object({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }).nullish(),
  output_tokens: count,
  output_tokens_details: z.object({ thinking_tokens: count }).nullish(),
})

/** Of what has a type that is not known, nothing else is looked at: it may have any shape. */
const known = <T extends z.ZodType>(types: readonly string[], schema: T) =>
  z.preprocess((value) => {
    const type = typeOf(value)
    return type === undefined || types.includes(type) ? value : { type }
  }, schema)

const blockSchema = known(
  ['text', 'thinking', 'redacted_thinking', 'tool_use'],
  z.object({
    type: z.string(),
    text: z.string().nullish(),
    thinking: z.string().nullish(),
    signature: z.string().nullish(),
    data: z.string().nullish(),
    id: z.string().nullish(),
    name: z.string().nullish(),
    input: z.record(z.string(), z.unknown()).nullish(),
  }),
)

const messageSchema = z.object({
  id: z.string().nullish(),
  model: z.string().nullish(),
  content: z.array(blockSchema).nullish(),
  stop_reason: z.string().nullish(),
  stop_sequence: z.string().nullish(),
  usage: usageSchema.nullish(),
})

/** A message that is no event's: its content is there. */
const wholeSchema = messageSchema.extend({ content: z.array(blockSchema) })

const eventSchema = z.object({
  type: z.string(),
  index: z.int().nullish(),
  message: messageSchema.nullish(),
  content_block: blockSchema.nullish(),
  delta: known(
    ['text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta'],
    z.object({
      type: z.string().nullish(),
      text: z.string().nullish(),
      thinking: z.string().nullish(),
      signature: z.string().nullish(),
      partial_json: z.string().nullish(),
      stop_reason: z.string().nullish(),
      stop_sequence: z.string().nullish(),
    }),
  ).nullish(),
  usage: usageSchema.nullish(),
})

type Delta = NonNullable<z.output<typeof eventSchema>['delta']>

const EVENTS: readonly string[] = ['message_start', 'content_block_start', 'content_block_delta', 'message_delta']

const STOPS: ReadonlyMap<string, StopReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
])

/** Usage of an event over what earlier ones said: Anthropic tells the prompt first, the output last. Contract: 5.5. */
function usageOf(usage: z.output<typeof usageSchema>, before: Usage): Usage {
  const { cache_creation: creation } = usage
  const cacheRead = usage.cache_read_input_tokens ?? before.cacheRead
  const cacheWrite1h = creation?.ephemeral_1h_input_tokens ?? before.cacheWrite1h
  const cacheWrite =
    creation?.ephemeral_5m_input_tokens ?? minus(usage.cache_creation_input_tokens, cacheWrite1h) ?? before.cacheWrite
  const uncached = usage.input_tokens ?? before.input - before.cacheRead - before.cacheWrite - before.cacheWrite1h
  return {
    input: uncached + cacheRead + cacheWrite + cacheWrite1h,
    cacheRead,
    cacheWrite,
    cacheWrite1h,
    output: usage.output_tokens ?? before.output,
    reasoning: usage.output_tokens_details?.thinking_tokens ?? before.reasoning,
  }
}

/** Tokens of what stands under `usage` of a whole message; undefined when it tells none. */
export function anthropicUsage(usage: unknown): Usage | undefined {
  const { data } = usageSchema.safeParse(usage)
  const isTold = typeof (data?.input_tokens ?? data?.output_tokens) === 'number'
  return data && isTold ? usageOf(data, NO_USAGE) : undefined
}

/** Unknown reasons read as `stop`. */
export const anthropicStop = (reason: string): StopReason => STOPS.get(reason) ?? 'stop'

const minus = (all: number | null | undefined, part: number): number | undefined =>
  typeof all === 'number' ? Math.max(0, all - part) : undefined

/** Reads the events of a message stream. Contract: gateway.md 5.4. */
export class AnthropicReader {
  #usage = NO_USAGE
  #calls = -1
  /** Calls by the index of their block. */
  readonly #indexes = new Map<number, number>()

  /** @param data of an event. @throws AnswerError */
  read(data: string): ChatEvent[] {
    const json = jsonOf(data)
    const type = typeOf(json)
    if (type === 'error') return [{ kind: 'error', data }]
    if (type !== undefined && !EVENTS.includes(type)) return []
    const { index, message, content_block: block, delta, usage } = parse(eventSchema, json)
    switch (type) {
      case 'message_start':
        return [startOf(message ?? {}), ...this.#counted(message?.usage)]
      case 'content_block_start':
        return block ? this.#block(block, index ?? 0, textsAt(data, ['content_block', 'input'])[0], true) : []
      case 'content_block_delta':
        return this.#delta(delta ?? {}, index ?? 0)
      case 'message_delta':
        return [...this.#counted(usage), ...stopOf(delta ?? {})]
      default:
        return []
    }
  }

  /** A whole message. @throws AnswerError */
  readMessage(body: string): ChatEvent[] {
    const message = parse(wholeSchema, jsonOf(body))
    const inputs = textsAt(body, ['content', '*', 'input'])
    return [
      startOf(message),
      ...message.content.flatMap((block, i) => this.#block(block, i, inputs[i])),
      ...this.#counted(message.usage),
      ...stopOf(message),
    ]
  }

  #counted(usage: z.output<typeof usageSchema> | null | undefined): ChatEvent[] {
    if (!usage) return []
    this.#usage = usageOf(usage, this.#usage)
    return [{ kind: 'usage', usage: this.#usage }]
  }

  /** In a stream a block starts empty, its input as `{}`. */
  #block(block: z.output<typeof blockSchema>, index: number, input: string | undefined, isStart = false): ChatEvent[] {
    if (block.type === 'tool_use') {
      const at = ++this.#calls
      this.#indexes.set(index, at)
      const call: ChatEvent = { kind: 'call', index: at, id: block.id ?? `toolu_${at}`, name: block.name ?? '' }
      const text = isStart && Object.keys(block.input ?? {}).length === 0 ? '' : mapText(block.input, input)
      return [call, ...(text === '' ? [] : [{ kind: 'arguments', index: at, text } as const])]
    }
    if (block.type === 'redacted_thinking') return [{ kind: 'sealed', data: block.data ?? '' }]
    if (block.type === 'text') return this.#delta({ text: block.text }, index)
    return block.type === 'thinking' ? this.#delta({ thinking: block.thinking, signature: block.signature }, index) : []
  }

  #delta(delta: Partial<Delta>, index: number): ChatEvent[] {
    const { text, thinking, signature, partial_json: json } = delta
    const call = this.#indexes.get(index)
    return [
      ...(text ? [{ kind: 'text', text } as const] : []),
      ...(thinking ? [{ kind: 'reasoning', family: 'claude', text: thinking } as const] : []),
      ...(signature ? [{ kind: 'signature', signature } as const] : []),
      ...(json && call !== undefined ? [{ kind: 'arguments', index: call, text: json } as const] : []),
    ]
  }
}

function stopOf({ stop_reason: reason, stop_sequence: sequence }: Partial<Delta>): ChatEvent[] {
  if (typeof reason !== 'string') return []
  return [{ kind: 'stop', reason: anthropicStop(reason), ...(typeof sequence === 'string' && { sequence }) }]
}

function typeOf(value: unknown): string | undefined {
  const type = isMap(value) ? value['type'] : undefined
  return typeof type === 'string' ? type : undefined
}

function parse<T>(schema: z.ZodType<T>, json: unknown): T {
  try {
    return schema.parse(json)
  } catch (error) {
    throw new AnswerError('the provider sent no message', { cause: error })
  }
}
