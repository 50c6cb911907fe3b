import { isMap } from '../../base/json.ts'
import type { Usage } from '../chat/events.ts'
import { optional, type Json } from '../chat/json.ts'
import { knownCall } from '../chat/openai/known-call.ts'
import { openAiUsageOf } from '../chat/openai/write-answer.ts'
import type { Assembly, Form } from './form.ts'
import { mapOf, mapsOf, textOf } from './json.ts'

/** Chat completions. */
export const ChatForm: Form = {
  assemble: () => new ChatAssembly(),
  toStream: ({ choices, usage: told, ...head }, usage) => {
    const chunk = (fields: Json): string => data({ ...head, object: 'chat.completion.chunk', ...fields })
    const chunks = mapsOf(choices).map(({ index = 0, message, logprobs = null, finish_reason, ...rest }) => {
      const delta = optional({ ...mapOf(message), tool_calls: numbered(mapOf(message)['tool_calls']) })
      const said = chunk({ choices: [{ ...rest, index, delta, logprobs, finish_reason: null }] })
      return said + chunk({ choices: [{ index, delta: {}, logprobs: null, finish_reason }] })
    })
    const counted = usage ? chunk({ choices: [], usage: told ?? openAiUsageOf(usage) }) : ''
    return `${chunks.join('')}${counted}data: [DONE]\n\n`
  },
}

const data = (value: Json): string => `data: ${JSON.stringify(value)}\n\n`

const numbered = (calls: unknown): Json[] | undefined =>
  Array.isArray(calls) ? mapsOf(calls).map((call, index) => ({ index, ...call })) : undefined

class ChatAssembly implements Assembly {
  #head: Json = {}
  #usage: unknown
  readonly #choices = new Map<number, { message: Json; rest: Json }>()

  read({ choices, usage, ...head }: Json): void {
    this.#head = { ...this.#head, ...head }
    if (isMap(usage)) this.#usage = usage
    for (const { index = 0, delta, ...rest } of mapsOf(choices)) {
      const choice = this.#choices.get(Number(index)) ?? { message: {}, rest: {} }
      this.#choices.set(Number(index), choice)
      extend(choice.message, mapOf(delta))
      extend(choice.rest, rest)
    }
  }

  whole(usage: Usage): Json | undefined {
    if (this.#choices.size === 0) return undefined
    const choices = [...this.#choices]
      .sort(([a], [b]) => a - b)
      .map(([index, { message, rest }]) => {
        const { tool_calls: calls, ...said } = message
        const unnumbered = mapsOf(calls).map(({ index: _, ...call }) => call)
        return {
          index,
          message: { content: null, ...said, ...(unnumbered.length > 0 && { tool_calls: unnumbered }) },
          logprobs: null,
          ...rest,
        }
      })
    return { ...this.#head, object: 'chat.completion', choices, usage: this.#usage ?? openAiUsageOf(usage) }
  }
}

/** What comes once, and is not a piece of a longer text. */
const WHOLE: ReadonlySet<string> = new Set(['role', 'id', 'type', 'name', 'finish_reason', 'index'])

/** Adds the pieces of a delta: texts and lists grow, calls each by itself. What is empty replaces nothing. */
function extend(into: Json, delta: Json): void {
  for (const [name, piece] of Object.entries(delta)) {
    if (name === '__proto__') continue // looked up, it is the object that all others inherit from
    const before = into[name]
    if (piece === '' || piece === null || piece === undefined) into[name] ??= piece ?? null
    else if (typeof piece === 'string' && !WHOLE.has(name)) into[name] = textOf(before) + piece
    else if (name === 'tool_calls') into[name] = withCalls(mapsOf(before), mapsOf(piece))
    else if (Array.isArray(piece)) into[name] = [...(Array.isArray(before) ? before : []), ...piece]
    else if (isMap(piece)) extend((into[name] = mapOf(before)), piece)
    else into[name] = piece
  }
}

function withCalls(calls: Json[], pieces: readonly Json[]): Json[] {
  for (const piece of pieces) {
    const known = knownCall(calls, piece, textOf(mapOf(piece['function'])['name']) !== '')
    if (!known) calls.push({})
    extend(known ?? mapOf(calls.at(-1)), piece)
  }
  return calls
}
