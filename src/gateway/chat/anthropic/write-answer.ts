import { collect, type Piece } from '../answer.ts'
import { AnswerError, NO_USAGE, type Said, type StopReason, type Usage } from '../events.ts'
import type { Family } from '../form.ts'
import { parseJson, type Json } from '../json.ts'
import { RawJson } from '../raw-json.ts'
import { CallOrder } from './call-order.ts'
import { unsigned } from './unsigned.ts'

const STOP: Readonly<Record<StopReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
  malformed: 'end_turn',
}

/**
 * Tokens as Anthropic's clients count them: the prompt without its cached parts, which some providers do not count in.
 * Contract: gateway.md 5.5.
 */
export const anthropicUsageOf = (usage: Usage): Json => ({
  input_tokens: Math.max(0, usage.input - usage.cacheRead - usage.cacheWrite - usage.cacheWrite1h),
  cache_creation_input_tokens: usage.cacheWrite + usage.cacheWrite1h,
  cache_read_input_tokens: usage.cacheRead,
  cache_creation: {
    ephemeral_5m_input_tokens: usage.cacheWrite,
    ephemeral_1h_input_tokens: usage.cacheWrite1h,
  },
  output_tokens: usage.output,
  ...(usage.reasoning > 0 && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
})

const stopOf = (reason: StopReason, sequence: string | undefined): Json => ({
  stop_reason: sequence === undefined ? STOP[reason] : 'stop_sequence',
  stop_sequence: sequence ?? null,
})

/** A whole message. Contract: gateway.md 5.3. @throws AnswerError */
export function writeAnthropicAnswer(
  { id, model }: { readonly id: string; readonly model: string },
  events: readonly Said[],
): Json {
  const { pieces, reason, sequence, usage = NO_USAGE } = collect(events)
  const content = pieces.map((piece) => blockOf(piece, reason))
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

function blockOf(piece: Piece, reason: StopReason): Json {
  switch (piece.kind) {
    case 'text':
      return { type: 'text', text: piece.text }
    case 'reasoning':
      return { type: 'thinking', thinking: piece.text, signature: signatureOf(piece) }
    case 'sealed':
      return { type: 'redacted_thinking', data: piece.data }
    case 'call':
      return { type: 'tool_use', id: piece.id, name: piece.name, input: inputOf(piece.text, reason) }
  }
}

/** Arguments are an object in JSON, or the call is none: without them a tool would do something else. @throws AnswerError */
function inputOf(text: string, reason: StopReason): RawJson | Json {
  if (text === '') return {}
  if (parseJson(text)) return new RawJson(text)
  if (reason === 'length') return {} // it was cut off, and the client is told so
  throw new AnswerError('the arguments of a tool call are no JSON object')
}

const signatureOf = ({ family, signature }: { readonly family: Family; readonly signature?: string }): string =>
  family === 'claude' && signature !== undefined ? signature : unsigned(family)

type Block = 'text' | 'thinking' | 'tool_use' | 'redacted_thinking'

/** Writes the events of a message stream; block indexes run from 0 without gaps. Contract: gateway.md 5.4. */
export class AnthropicStreamWriter {
  readonly #head: { readonly id: string; readonly model: string }
  readonly #estimate: Usage
  readonly #calls = new CallOrder()
  #usage: Usage | undefined
  #stop: Json = stopOf('stop', undefined)
  #index = -1
  #open: { readonly block: Block; readonly call?: number } | undefined
  /** Whose thought is open and unsigned. */
  #thinker: Family | undefined

  /** @param estimate of the prompt's tokens, which the stream begins with. */
  constructor(head: { readonly id: string; readonly model: string }, estimate: Usage) {
    this.#head = head
    this.#estimate = estimate
  }

  /** @throws AnswerError */
  write(event: Said): string {
    return this.#calls
      .arrange(event)
      .map((each) => this.#said(each))
      .join('')
  }

  #said(event: Said): string {
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
        return this.#thought(event.family, { type: 'thinking_delta', thinking: event.text })
      case 'signature': {
        // Only Claude's is one that a client gives back in a thought.
        if (this.#thinker !== undefined && this.#thinker !== 'claude') return ''
        const signed = this.#thought('claude', { type: 'signature_delta', signature: event.signature })
        this.#thinker = undefined
        return signed
      }
      case 'sealed':
        return this.#begin('redacted_thinking', { type: 'redacted_thinking', data: event.data })
      case 'call': {
        const { index, id, name } = event
        this.#stop = stopOf('tool_calls', undefined)
        return this.#begin('tool_use', { type: 'tool_use', id, name, input: {} }, index)
      }
      case 'arguments':
        // This dialect has no place for pieces of a call that is over.
        if (this.#open?.call !== event.index) throw new AnswerError('a tool call goes on behind its end')
        return this.#delta({ type: 'input_json_delta', partial_json: event.text })
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'stop':
        this.#stop = stopOf(event.reason, event.sequence)
        return ''
    }
  }

  /** Behind the last event. */
  end(estimate: Usage): string {
    const usage = anthropicUsageOf(this.#usage ?? estimate)
    const waiting = this.#calls.rest().map((each) => this.#said(each))
    return `${waiting.join('')}${this.#close()}${line('message_delta', { delta: this.#stop, usage })}${line('message_stop', {})}`
  }

  #piece(block: Block, empty: Json, delta: Json): string {
    const begun = this.#open?.block === block ? '' : this.#begin(block, empty)
    return begun + this.#delta(delta)
  }

  #thought(family: Family, delta: Json): string {
    const written = this.#piece('thinking', THINKING, delta)
    this.#thinker = family
    return written
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
    const family = this.#thinker
    const signed = family ? this.#delta({ type: 'signature_delta', signature: unsigned(family) }) : ''
    this.#open = undefined
    this.#thinker = undefined
    return signed + line('content_block_stop', { index: this.#index })
  }
}

const THINKING = { type: 'thinking', thinking: '', signature: '' }

const line = (type: string, fields: Json): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
