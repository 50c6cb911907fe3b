import { collect, type Piece } from '../answer.ts'
import type { Said, StopReason, Usage } from '../events.ts'
import { optional, type Json } from '../json.ts'

/** What stays the same in all chunks of an answer. */
export interface AnswerHead {
  readonly id: string
  /** Seconds since the epoch. */
  readonly created: number
  readonly model: string
}

const FINISH: Readonly<Record<StopReason, string>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  content_filter: 'content_filter',
  malformed: 'stop',
}

/** Tokens as OpenAI's clients count them. Contract: gateway.md 5.5. */
export function openAiUsageOf(usage: Usage): Json {
  const written = usage.cacheWrite + usage.cacheWrite1h
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, ...(written > 0 && { cache_write_tokens: written }) },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }
}

/** A whole chat completion. Contract: gateway.md 5.3. */
export function writeOpenAiAnswer({ id, created, model }: AnswerHead, events: readonly Said[]): Json {
  const { pieces, reason, usage } = collect(events)
  const textOf = (kind: 'text' | 'reasoning'): string =>
    pieces.flatMap((piece) => (piece.kind === kind ? [piece.text] : [])).join('')
  const [text, reasoning] = [textOf('text'), textOf('reasoning')]
  const thoughts = pieces.flatMap(thinkingBlock)
  const calls = pieces.flatMap((piece) => (piece.kind === 'call' ? [callOf(piece)] : []))
  const message = optional({
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    reasoning_content: reasoning === '' ? undefined : reasoning,
    thinking_blocks: thoughts.length > 0 ? thoughts : undefined,
    tool_calls: calls.length > 0 ? calls : undefined,
  })
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: FINISH[reason] }],
    ...(usage && { usage: openAiUsageOf(usage) }),
  }
}

/** Claude's thoughts as blocks that a client can send back. */
function thinkingBlock(piece: Piece): Json[] {
  if (piece.kind === 'sealed') return [{ type: 'redacted_thinking', data: piece.data }]
  if (piece.kind !== 'reasoning' || piece.family !== 'claude' || piece.signature === undefined) return []
  return [{ type: 'thinking', thinking: piece.text, signature: piece.signature }]
}

const callOf = ({ id, name, text, signature }: Extract<Piece, { kind: 'call' }>): Json => ({
  id,
  type: 'function',
  function: { name, arguments: text === '' ? '{}' : text },
  ...signatureOf(signature),
})

const signatureOf = (signature: string | undefined): Json =>
  signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } }

/** Writes the chunks of a stream. Contract: gateway.md 5.4, 6. */
export class OpenAiStreamWriter {
  readonly #head: AnswerHead
  readonly #withUsage: boolean
  #usage: Usage | undefined
  #stop: StopReason = 'stop'
  /** Calls that have no arguments yet. */
  readonly #bare = new Set<number>()
  /** The thought that waits for its signature. */
  #thought = ''

  constructor(head: AnswerHead, withUsage: boolean) {
    this.#head = head
    this.#withUsage = withUsage
  }

  write(event: Said): string {
    switch (event.kind) {
      case 'start':
        return this.#chunk({ role: 'assistant', content: '' })
      case 'text':
        return this.#chunk({ content: event.text })
      case 'reasoning':
        if (event.family === 'claude') this.#thought += event.text
        return this.#chunk({ reasoning_content: event.text })
      case 'signature': {
        const thinking = this.#thought
        this.#thought = ''
        return this.#chunk({ thinking_blocks: [{ type: 'thinking', thinking, signature: event.signature }] })
      }
      case 'sealed':
        return this.#chunk({ thinking_blocks: [{ type: 'redacted_thinking', data: event.data }] })
      case 'call': {
        const { index, id, name, signature } = event
        this.#stop = 'tool_calls'
        this.#bare.add(index)
        const call = { index, id, type: 'function', function: { name, arguments: '' }, ...signatureOf(signature) }
        return this.#chunk({ tool_calls: [call] })
      }
      case 'arguments':
        this.#bare.delete(event.index)
        return this.#arguments(event.index, event.text)
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'stop':
        this.#stop = event.reason // some providers give one with every piece
        return ''
    }
  }

  /** Behind the last event. */
  end(estimate: Usage): string {
    const bare = [...this.#bare].map((index) => this.#arguments(index, '{}')).join('')
    const stop = this.#chunk({}, FINISH[this.#stop])
    const usage = { choices: [], usage: openAiUsageOf(this.#usage ?? estimate) }
    return `${bare}${stop}${this.#withUsage ? this.#data(usage) : ''}data: [DONE]\n\n`
  }

  #arguments(index: number, text: string): string {
    return this.#chunk({ tool_calls: [{ index, function: { arguments: text } }] })
  }

  #chunk(delta: Json, finish: string | null = null): string {
    return this.#data({ choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })
  }

  #data(fields: Json): string {
    const { id, created, model } = this.#head
    return `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, ...fields })}\n\n`
  }
}
