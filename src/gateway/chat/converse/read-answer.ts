import * as z from 'zod'
import { AnswerError, type ChatEvent, type StopReason, type Usage } from '../events.ts'
import { present } from '../parse.ts'
import { textsAt } from '../raw-json.ts'

const count = z.int().nonnegative().nullish().transform(present)

const usageSchema = z.object({
  inputTokens: count,
  outputTokens: count,
  cacheReadInputTokens: count,
  cacheWriteInputTokens: count,
  cacheDetails: z
    .array(z.object({ ttl: z.string().nullish().transform(present), inputTokens: count }))
    .nullish()
    .transform(present),
})

const reasoningSchema = z.object({
  text: z.string().nullish().transform(present),
  signature: z.string().nullish().transform(present),
  redactedContent: z.string().nullish().transform(present),
  reasoningText: z
    .object({ text: z.string().nullish().transform(present), signature: z.string().nullish().transform(present) })
    .nullish()
    .transform(present),
})

const blockSchema = z.object({
  text: z.string().nullish().transform(present),
  reasoningContent: reasoningSchema.nullish().transform(present),
  toolUse: z
    .object({
      toolUseId: z.string().nullish().transform(present),
      name: z.string().nullish().transform(present),
      input: z.unknown().optional().transform(present),
    })
    .nullish()
    .transform(present),
})

const answerSchema = z.object({
  output: z.object({ message: z.object({ content: z.array(blockSchema) }) }),
  stopReason: z.string().nullish().transform(present),
  usage: usageSchema.nullish().transform(present),
})

const eventSchema = z.object({
  contentBlockIndex: z.int().nullish().transform(present),
  start: blockSchema.nullish().transform(present),
  delta: blockSchema.nullish().transform(present),
  stopReason: z.string().nullish().transform(present),
  usage: usageSchema.nullish().transform(present),
})

const EVENTS: ReadonlySet<string> = new Set([
  'messageStart',
  'contentBlockStart',
  'contentBlockDelta',
  'messageStop',
  'metadata',
])

const STOPS: ReadonlyMap<string, StopReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['guardrail_intervened', 'content_filter'],
  ['content_filtered', 'content_filter'],
  ['malformed_model_output', 'malformed'],
  ['malformed_tool_use', 'malformed'],
])

/** Contract: gateway.md 5.5. */
export function converseUsage(usage: z.output<typeof usageSchema>): Usage {
  const cacheRead = usage.cacheReadInputTokens ?? 0
  const written = usage.cacheWriteInputTokens ?? 0
  const hour = (usage.cacheDetails ?? []).filter(({ ttl }) => ttl === '1h')
  const cacheWrite1h = hour.reduce((sum, { inputTokens }) => sum + (inputTokens ?? 0), 0)
  return {
    input: (usage.inputTokens ?? 0) + cacheRead + written,
    cacheRead,
    cacheWrite: Math.max(0, written - cacheWrite1h),
    cacheWrite1h,
    output: usage.outputTokens ?? 0,
    reasoning: 0,
  }
}

/** Reads the messages of an event stream by their type, or a whole answer. Contract: gateway.md 5.4. */
export class ConverseReader {
  #calls = -1
  /** Calls by the index of their block. */
  readonly #indexes = new Map<number, number>()

  /** @param type the header `:event-type`, or `:exception-type`. @throws AnswerError */
  read(type: string, data: string): ChatEvent[] {
    if (type.endsWith('Exception')) return [{ kind: 'error', data, name: type }]
    if (!EVENTS.has(type)) return []
    const { contentBlockIndex: index, start, delta, stopReason, usage } = parse(eventSchema, data)
    if (type === 'messageStart') return [{ kind: 'start' }]
    const events = [start, delta].flatMap((block) => (block ? this.#block(block, index ?? 0) : []))
    if (usage) events.push({ kind: 'usage', usage: converseUsage(usage) })
    if (stopReason !== undefined) events.push({ kind: 'stop', reason: STOPS.get(stopReason) ?? 'stop' })
    return events
  }

  /** @throws AnswerError */
  readAnswer(body: string): ChatEvent[] {
    const { output, stopReason, usage } = parse(answerSchema, body)
    const inputs = textsAt(body, ['output', 'message', 'content', '*', 'toolUse', 'input'])
    return [
      { kind: 'start' },
      ...output.message.content.flatMap((block, i) => this.#block(block, i, inputs[i])),
      ...(usage ? [{ kind: 'usage', usage: converseUsage(usage) } as const] : []),
      { kind: 'stop', reason: STOPS.get(stopReason ?? '') ?? 'stop' },
    ]
  }

  /** @param whole the text of an input that is no text itself */
  #block(
    { text, reasoningContent: reasoning, toolUse }: z.output<typeof blockSchema>,
    index: number,
    whole?: string,
  ): ChatEvent[] {
    const events: ChatEvent[] = text ? [{ kind: 'text', text }] : []
    if (reasoning) events.push(...reasoningOf(reasoning))
    if (!toolUse) return events
    const { toolUseId: id, name, input } = toolUse
    if (name !== undefined) {
      this.#indexes.set(index, ++this.#calls)
      events.push({ kind: 'call', index: this.#calls, id: id ?? `tooluse_${this.#calls}`, name })
    }
    const call = this.#indexes.get(index)
    const json = typeof input === 'string' || input === undefined ? input : (whole ?? JSON.stringify(input))
    if (json && call !== undefined) events.push({ kind: 'arguments', index: call, text: json })
    return events
  }
}

function reasoningOf({ reasoningText, redactedContent, ...delta }: z.output<typeof reasoningSchema>): ChatEvent[] {
  const { text, signature } = reasoningText ?? delta
  return [
    ...(text ? [{ kind: 'reasoning', family: 'claude', text } as const] : []),
    ...(signature ? [{ kind: 'signature', signature } as const] : []),
    ...(redactedContent ? [{ kind: 'sealed', data: redactedContent } as const] : []),
  ]
}

function parse<T>(schema: z.ZodType<T>, data: string): T {
  try {
    return schema.parse(JSON.parse(data))
  } catch (error) {
    throw new AnswerError('the provider sent no Converse answer', { cause: error })
  }
}
