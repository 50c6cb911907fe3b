import type { Value, ValueMap } from '../../hcl/values.ts'

export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly parameters: ValueMap
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: Value
}

/** What a model answered. */
export interface Reply {
  readonly text: string
  readonly finishReason: string
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
  readonly toolCalls: readonly ToolCall[]
  /** Why the model declined. */
  readonly refusal?: string
  /** The model's message, to be sent back with the results of its calls. */
  readonly message: unknown
}

/** A reply whose calls were made. */
export interface Turn {
  readonly reply: Reply
  readonly results: readonly { readonly call: ToolCall; readonly content: string }[]
}

export interface Conversation {
  readonly model: string
  readonly system: string | undefined
  readonly prompt: string
  readonly image: { readonly mediaType: string; readonly base64: string } | undefined
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly temperature: number | undefined
  readonly maxTokens: number
  /** JSON is asked for, with a schema or without. */
  readonly json: { readonly schema: ValueMap | undefined } | undefined
}

/** One wire format. Paths are below the base URL. */
export interface Provider {
  readonly baseUrl?: string
  readonly defaultModel?: string
  path(conversation: Conversation): string
  headers(apiKey: string | undefined): Record<string, string>
  body(conversation: Conversation): object
  /** @throws ZodError for an answer of another shape */
  reply(answer: Value): Reply
}

const FINISH: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_calls',
}

/** `stop`, `length`, `tool_calls`, or the provider's own word in lower case. */
export function finishReason(reason: string | null | undefined): string {
  const lower = (reason ?? 'stop').toLowerCase()
  return FINISH[lower] ?? lower
}
