import type { Prompt, Speech } from '../speech.ts'
import { jsonReply, sse, streamReply, without, type Frame, type Json, type Reply, type Usage } from '../wire.ts'

/** What differs between the members of the family. */
export interface ChatStyle {
  /** How thoughts are told; not at all when absent. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'chunks'
  /** Where a stream tells its tokens: in a chunk of its own, in the last one, or in the last one's `x_groq`. */
  readonly usage: 'asked' | 'last' | 'x_groq'
  readonly callId: (n: number) => string
  readonly stops?: Partial<Record<Speech['stop'], string>>
  /** Added to each choice. */
  readonly choice?: Json
  /** Goes before everything else. */
  readonly preface?: Frame
  readonly id?: string
}

/** As the family counts: reasoning is in the output. */
export const usageOf = (usage: Usage): Json => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: without({
    cached_tokens: usage.cacheRead,
    audio_tokens: 0,
    cache_write_tokens: usage.cacheWrite > 0 ? usage.cacheWrite : undefined,
  }),
  completion_tokens_details: {
    reasoning_tokens: usage.reasoning,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})

const STOPS: Readonly<Record<Speech['stop'], string>> = { stop: 'stop', length: 'length', calls: 'tool_calls' }

/** A chat completion, whole or as a stream. */
export function chatReply(speech: Speech, prompt: Prompt, style: ChatStyle, includeUsage: boolean, now: number): Reply {
  const head = { id: style.id ?? 'chatcmpl-fake0001', created: Math.floor(now / 1000), model: speech.model }
  const finish = speech.finish ?? style.stops?.[speech.stop] ?? STOPS[speech.stop]
  if (prompt.stream) return streamReply(chunks(speech, style, head, finish, includeUsage))
  const { usage, isCounted } = speech
  const body = {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: messageOf(speech, style), logprobs: null, finish_reason: finish, ...style.choice }],
    ...(isCounted && { usage: usageOf(usage) }),
    ...(isCounted && style.usage === 'x_groq' && { x_groq: { id: 'req_fake' } }),
  }
  return jsonReply(body, isCounted ? usage : undefined)
}

function messageOf({ reasoning, pieces, calls }: Speech, { reasoning: field, callId }: ChatStyle): Json {
  const text = pieces.join('')
  const content =
    field === 'chunks' && reasoning !== ''
      ? [
          { type: 'thinking', thinking: [{ type: 'text', text: reasoning }] },
          { type: 'text', text },
        ]
      : text
  return without({
    role: 'assistant',
    content: pieces.length === 0 && calls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning !== '' && field !== undefined && field !== 'chunks' && { [field]: reasoning }),
    tool_calls:
      calls.length > 0
        ? calls.map(({ id, name, json }, n) => ({
            id: id ?? callId(n),
            type: 'function',
            function: { name, arguments: json },
          }))
        : undefined,
  })
}

function chunks(speech: Speech, style: ChatStyle, head: Json, finish: string, includeUsage: boolean): Frame[] {
  const { usage, isCounted } = speech
  const ownChunk = style.usage === 'asked' && includeUsage && isCounted
  const chunk = (delta: Json, reason: string | null = null, more: Json = {}): Json => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: reason, ...style.choice }],
    ...(ownChunk && { usage: null }),
    ...more,
  })
  const counts = usageOf(usage)
  const last: Json = !isCounted
    ? {}
    : { asked: {}, last: { usage: counts }, x_groq: { x_groq: { id: 'req_fake', usage: counts } } }[style.usage]
  return [
    ...(style.preface ? [style.preface] : []),
    sse(
      chunk({ role: 'assistant', content: '' }, null, style.usage === 'x_groq' ? { x_groq: { id: 'req_fake' } } : {}),
    ),
    ...reasoningDeltas(speech, style).map((delta) => sse(chunk(delta), { isContent: true })),
    ...speech.pieces.map((content) => sse(chunk({ content }), { isContent: true })),
    ...callDeltas(speech, style).map((delta) => sse(chunk(delta), { isContent: true })),
    sse(chunk({}, finish, last), isCounted && style.usage !== 'asked' ? { usage } : {}),
    ...(ownChunk ? [sse({ ...chunk({}), choices: [], usage: counts }, { usage })] : []),
    sse('[DONE]'),
  ]
}

function reasoningDeltas({ reasoning }: Speech, { reasoning: field }: ChatStyle): Json[] {
  if (reasoning === '' || field === undefined) return []
  const halves = [reasoning.slice(0, 4), reasoning.slice(4)].filter((half) => half !== '')
  return halves.map((text) =>
    field === 'chunks' ? { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] } : { [field]: text },
  )
}

/** Arguments come in two pieces, as they do. */
function callDeltas({ calls }: Speech, { callId, usage }: ChatStyle): Json[] {
  return calls.flatMap(({ id, name, json }, index) => {
    const start = { index, id: id ?? callId(index), type: 'function' }
    if (usage === 'last') return [{ tool_calls: [{ ...start, function: { name, arguments: json } }] }]
    const half = Math.ceil(json.length / 2)
    return [
      { tool_calls: [{ ...start, function: { name, arguments: '' } }] },
      { tool_calls: [{ index, function: { arguments: json.slice(0, half) } }] },
      { tool_calls: [{ index, function: { arguments: json.slice(half) } }] },
    ]
  })
}
