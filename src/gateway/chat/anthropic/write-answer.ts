import { collect, type Piece } from '../answer.ts'
import { NO_USAGE, type ChatEvent, type StopReason, type Usage } from '../events.ts'
import { optional, type Json } from '../json.ts'

const STOP: Readonly<Record<StopReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
  malformed: 'end_turn',
}

/** Tokens as Anthropic's clients count them: the prompt without its cached parts. Contract: gateway.md 5.5. */
export const anthropicUsageOf = (usage: Usage): Json => ({
  input_tokens: usage.input - usage.cacheRead - usage.cacheWrite - usage.cacheWrite1h,
  cache_creation_input_tokens: usage.cacheWrite + usage.cacheWrite1h,
  cache_read_input_tokens: usage.cacheRead,
  cache_creation: {
    ephemeral_5m_input_tokens: usage.cacheWrite,
    ephemeral_1h_input_tokens: usage.cacheWrite1h,
  },
  output_tokens: usage.output,
})

const stopOf = (reason: StopReason, sequence: string | undefined): Json => ({
  stop_reason: sequence === undefined ? STOP[reason] : 'stop_sequence',
  stop_sequence: sequence ?? null,
})

/** A whole message. Contract: gateway.md 5.3. */
export function writeAnthropicAnswer(
  { id, model }: { readonly id: string; readonly model: string },
  events: readonly ChatEvent[],
  estimate: Usage,
): Json {
  const { pieces, reason, sequence, usage = estimate } = collect(events)
  const content = pieces.map(blockOf)
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content,
    ...stopOf(reason, sequence),
    usage: anthropicUsageOf(usage),
  }
}

function blockOf(piece: Piece): Json {
  switch (piece.kind) {
    case 'text':
      return { type: 'text', text: piece.text }
    case 'reasoning':
      return { type: 'thinking', thinking: piece.text, signature: piece.signature ?? '' }
    case 'sealed':
      return { type: 'redacted_thinking', data: piece.data }
    case 'call':
      return { type: 'tool_use', id: piece.id, name: piece.name, input: inputOf(piece.text) }
  }
}

/** What a model sends as arguments is JSON, or it is no call. */
function inputOf(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch {
    return {}
  }
}

type Block = 'text' | 'thinking' | 'tool_use' | 'redacted_thinking'

/** Writes the events of a message stream; block indexes run from 0 without gaps. Contract: gateway.md 5.4. */
export class AnthropicStreamWriter {
  readonly #head: { readonly id: string; readonly model: string }
  readonly #estimate: Usage
  #usage: Usage | undefined
  #stop: Json = stopOf('stop', undefined)
  #index = -1
  #open: { readonly block: Block; readonly call?: number } | undefined

  /** @param estimate of the prompt's tokens, which the stream begins with. */
  constructor(head: { readonly id: string; readonly model: string }, estimate: Usage) {
    this.#head = head
    this.#estimate = estimate
  }

  write(event: ChatEvent): string {
    switch (event.kind) {
      case 'start': {
        const usage = anthropicUsageOf({ ...NO_USAGE, input: this.#estimate.input })
        const { id, model } = this.#head
        const message = {
          id,
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage,
        }
        return line('message_start', { message })
      }
      case 'text':
        return this.#piece('text', { type: 'text', text: '' }, { type: 'text_delta', text: event.text })
      case 'reasoning':
        return this.#piece('thinking', THINKING, { type: 'thinking_delta', thinking: event.text })
      case 'signature':
        return this.#piece('thinking', THINKING, { type: 'signature_delta', signature: event.signature })
      case 'sealed':
        return this.#begin('redacted_thinking', { type: 'redacted_thinking', data: event.data })
      case 'call': {
        const { index, id, name } = event
        return this.#begin('tool_use', { type: 'tool_use', id, name, input: {} }, index)
      }
      case 'arguments':
        // This dialect has no place for pieces of a call that is not the open one. Providers send calls one by one.
        if (this.#open?.call !== event.index) {
          return this.write({ kind: 'error', code: 'upstream_invalid_response', message: 'tool calls are interleaved' })
        }
        return this.#delta({ type: 'input_json_delta', partial_json: event.text })
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'stop':
        this.#stop = stopOf(event.reason, event.sequence)
        return ''
      case 'error':
        return line('error', { error: optional({ type: 'api_error', message: event.message, code: event.code }) })
    }
  }

  /** Behind the last event. */
  end(): string {
    const usage = anthropicUsageOf(this.#usage ?? this.#estimate)
    return `${this.#close()}${line('message_delta', { delta: this.#stop, usage })}${line('message_stop', {})}`
  }

  #piece(block: Block, empty: Json, delta: Json): string {
    const begun = this.#open?.block === block ? '' : this.#begin(block, empty)
    return begun + this.#delta(delta)
  }

  #begin(block: Block, content: Json, call?: number): string {
    const closed = this.#close()
    this.#open = { block, ...(call !== undefined && { call }) }
    return closed + line('content_block_start', { index: ++this.#index, content_block: content })
  }

  #delta(delta: Json): string {
    return line('content_block_delta', { index: this.#index, delta })
  }

  #close(): string {
    if (!this.#open) return ''
    this.#open = undefined
    return line('content_block_stop', { index: this.#index })
  }
}

const THINKING = { type: 'thinking', thinking: '', signature: '' }

const line = (type: string, fields: Json): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
