import { isMap } from '../../base/json.ts'
import type { Json } from '../chat/json.ts'
import { RawJson, textsAt } from '../chat/raw-json.ts'
import type { Assembly, Form } from './form.ts'
import { mapOf, mapsOf, textOf } from './json.ts'

/** Anthropic's messages. */
export const MessagesForm: Form = {
  assemble: () => new MessageAssembly(),
  toStream: ({ content, usage, ...answer }, _usage, source) => {
    const inputs = textsAt(source, ['content', '*', 'input'])
    const { stop_reason, stop_sequence = null, stop_details, container, context_management, ...head } = answer
    const message = {
      ...head,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...mapOf(usage), output_tokens: 0 },
    }
    const blocks = mapsOf(content).map((block, index) => {
      const [start, deltas] = taken(block, inputs[index])
      const begun = event('content_block_start', { index, content_block: start })
      const said = deltas.map((delta) => event('content_block_delta', { index, delta }))
      return `${begun}${said.join('')}${event('content_block_stop', { index })}`
    })
    const delta = { stop_reason, stop_sequence, stop_details, container }
    const stop = event('message_delta', { delta, usage, context_management })
    return `${event('message_start', { message })}${blocks.join('')}${stop}${event('message_stop', {})}`
  },
}

const event = (type: string, fields: Json): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

/**
 * A block as it starts, and what is said of it then; blocks that do not grow start whole.
 * @param source of its input
 */
function taken(block: Json, source: string | undefined): [start: Json, deltas: Json[]] {
  const { text, thinking, signature, input = {}, citations } = block
  switch (block['type']) {
    case 'text': {
      const cited = mapsOf(citations).map((citation) => ({ type: 'citations_delta', citation }))
      const start = { ...block, text: '', ...(citations !== undefined && { citations: [] }) }
      return [start, [...cited, { type: 'text_delta', text }]]
    }
    case 'thinking':
      return [
        { ...block, thinking: '', signature: '' },
        [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature: textOf(signature) },
        ],
      ]
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      return [{ ...block, input: {} }, [{ type: 'input_json_delta', partial_json: source ?? JSON.stringify(input) }]]
    default:
      return [block, []]
  }
}

/** What tells nothing that is not told elsewhere. */
const SILENT: ReadonlySet<unknown> = new Set(['ping', 'content_block_stop', 'message_stop'])

class MessageAssembly implements Assembly {
  #message: Json | undefined
  /** By the index that the provider gives them, however far apart. */
  readonly #blocks = new Map<number, Json>()
  /** Arguments so far, by block. */
  readonly #inputs = new Map<number, string>()

  read({ type, message, index, content_block: block, delta, usage, context_management: managed, ...rest }: Json): void {
    const at = Number(index)
    if (type === 'message_start' && isMap(message)) this.#message = message
    else if (type === 'content_block_start') this.#blocks.set(at, { ...mapOf(block) })
    else if (type === 'content_block_delta') this.#extend(at, mapOf(delta))
    else if (type === 'message_delta' && this.#message && Object.values(rest).every((each) => each === null)) {
      Object.assign(this.#message, delta, { usage: { ...mapOf(this.#message['usage']), ...mapOf(usage) } })
      if (isMap(managed)) this.#message['context_management'] = managed
    } else if (!SILENT.has(type)) throw new Error('an event that would be lost')
  }

  #extend(at: number, { type, text, thinking, signature, partial_json: json, citation }: Json): void {
    const block = this.#blocks.get(at)
    if (!block) throw new Error('a delta of no block')
    if (type === 'text_delta') block['text'] = textOf(block['text']) + textOf(text)
    else if (type === 'thinking_delta') block['thinking'] = textOf(block['thinking']) + textOf(thinking)
    else if (type === 'signature_delta') block['signature'] = signature
    else if (type === 'input_json_delta') this.#inputs.set(at, (this.#inputs.get(at) ?? '') + textOf(json))
    else if (type === 'citations_delta') block['citations'] = [...mapsOf(block['citations']), citation]
    else throw new Error('a delta that would be lost')
  }

  whole(): Json | undefined {
    if (!this.#message) return undefined
    for (const [at, json] of this.#inputs) {
      const block = this.#blocks.get(at)
      if (!block || json === '') continue
      JSON.parse(json) // what is none is not kept
      block['input'] = new RawJson(json)
    }
    const inOrder = [...this.#blocks].sort(([a], [b]) => a - b)
    return { ...this.#message, content: inOrder.map(([, block]) => block) }
  }
}
