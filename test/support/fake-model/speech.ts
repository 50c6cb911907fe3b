import { isJson, list, object, type Json, type Usage } from './wire.ts'
import type { Behaviour } from './script.ts'

/** What a prompt comes to, whatever the wire. */
export interface Prompt {
  readonly model: string
  readonly stream: boolean
  /** All of it, for counting. */
  readonly text: string
  /** What the user said last. */
  readonly last: string
  /** The results of tools that the prompt ends with. */
  readonly result: string | undefined
  readonly tools: readonly { readonly name: string; readonly schema: unknown }[]
  /** A tool must be called: any, or this one. */
  readonly forced: boolean | string
  readonly format: 'text' | 'json' | { readonly schema: unknown }
  readonly maxTokens: number | undefined
  readonly thinks: boolean
}

export interface Speech {
  readonly reasoning: string
  readonly pieces: readonly string[]
  readonly calls: readonly { readonly id: string | undefined; readonly name: string; readonly json: string }[]
  readonly stop: 'stop' | 'length' | 'calls'
  /** In the provider's own words, as the script has it. */
  readonly finish: string | undefined
  readonly usage: Usage
  readonly isCounted: boolean
  readonly model: string
}

/** As everybody estimates: four bytes a token. */
export const tokensOf = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)

/** What the fake answers. */
export function speak(prompt: Prompt, behaviour: Behaviour): Speech {
  const calls = callsOf(prompt, behaviour)
  const said = calls.length > 0 && behaviour.text === undefined ? [] : piecesOf(prompt, behaviour)
  const reasoning = prompt.thinks ? (behaviour.reasoning ?? 'Let me think.') : (behaviour.reasoning ?? '')
  const { pieces, isCut } = within(said, behaviour.text === undefined ? prompt.maxTokens : undefined)
  const spoken = tokensOf(pieces.join('') + calls.map(({ name, json }) => name + json).join(''))
  const usage: Usage = {
    input: tokensOf(prompt.text) + 3,
    cacheRead: 0,
    cacheWrite: 0,
    cacheWrite1h: 0,
    output: spoken + tokensOf(reasoning),
    reasoning: tokensOf(reasoning),
    ...behaviour.usage,
  }
  return {
    reasoning,
    pieces,
    calls,
    stop: calls.length > 0 ? 'calls' : isCut ? 'length' : 'stop',
    finish: behaviour.finish,
    usage,
    isCounted: behaviour.noUsage !== true,
    model: behaviour.answeredModel ?? prompt.model,
  }
}

function callsOf(prompt: Prompt, behaviour: Behaviour): Speech['calls'] {
  if (prompt.result !== undefined) return []
  if (behaviour.calls) {
    return behaviour.calls.map(({ id, name, arguments: args }) => ({
      id,
      name,
      json: typeof args === 'string' ? args : JSON.stringify(args),
    }))
  }
  const { forced, tools } = prompt
  const tool = typeof forced === 'string' ? tools.find(({ name }) => name === forced) : tools[0]
  return forced !== false && tool ? [{ id: undefined, name: tool.name, json: JSON.stringify(sample(tool.schema)) }] : []
}

function piecesOf(prompt: Prompt, { text, repeat = 1 }: Behaviour): string[] {
  const pieces = typeof text === 'string' ? words(text) : (text ?? words(plainAnswer(prompt)))
  return repeat === 1 ? [...pieces] : Array.from({ length: repeat }, () => pieces).flat()
}

function plainAnswer({ format, result, last }: Prompt): string {
  if (format === 'json') return '{"answer": "yes"}'
  if (format !== 'text') return JSON.stringify(sample(format.schema))
  return result === undefined ? `You said: ${last}` : `The tools say: ${result}`
}

const words = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? []

function within(pieces: readonly string[], limit = Infinity): { pieces: readonly string[]; isCut: boolean } {
  const kept: string[] = []
  for (const piece of pieces) {
    if (tokensOf(kept.join('') + piece) > limit) return { pieces: kept, isCut: true }
    kept.push(piece)
  }
  return { pieces: kept, isCut: false }
}

/** A value that a JSON Schema admits. */
export function sample(schema: unknown, root: unknown = schema): unknown {
  const { type, properties, items, enum: values, const: constant, $ref: ref, minimum, minItems } = object(schema)
  if (constant !== undefined) return constant
  if (Array.isArray(values)) return values[0]
  if (typeof ref === 'string') return sample(resolve(ref, root), root)
  for (const each of ['anyOf', 'oneOf', 'allOf']) {
    const [first] = list(object(schema)[each])
    if (first) return sample(first, root)
  }
  const [name] = Array.isArray(type) ? type : [type]
  if (name === 'object' || isJson(properties)) {
    return Object.fromEntries(Object.entries(object(properties)).map(([key, each]) => [key, sample(each, root)]))
  }
  if (name === 'array') return Array.from({ length: Number(minItems ?? 1) }, () => sample(items, root))
  if (name === 'integer' || name === 'number') return Number(minimum ?? 1)
  if (name === 'boolean') return true
  return name === 'null' ? null : 'text'
}

const resolve = (ref: string, root: unknown): unknown =>
  ref
    .replace(/^#\/?/, '')
    .split('/')
    .filter((name) => name !== '')
    .reduce<unknown>((at, name) => object(at)[name], root)

/** The name of an object without `additionalProperties: false`: what strict schemas must not have. */
export function looseObject(schema: unknown, at = 'schema'): string | undefined {
  if (!isJson(schema)) return undefined
  if (schema['type'] === 'object' && schema['additionalProperties'] !== false) return at
  for (const [name, each] of Object.entries(schema)) {
    const found = Array.isArray(each)
      ? each.map((one, i) => looseObject(one, `${at}.${name}.${i}`)).find((one) => one !== undefined)
      : looseObject(each, `${at}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

/** A bag of words in so many values, of length 1; equal texts are equal, values are those of a float32. */
export function embed(text: string, dimensions: number): number[] {
  const values = Array.from({ length: dimensions }, () => 0)
  for (const word of text.toLowerCase().match(/\w+/g) ?? ['']) {
    let hash = 7
    for (const letter of word) hash = (hash * 31 + letter.charCodeAt(0)) % 1_000_003
    const slot = hash % dimensions
    values[slot] = (values[slot] ?? 0) + 1
  }
  const length = Math.hypot(...values) || 1
  return values.map((value) => Math.fround(value / length))
}

/** As some providers send vectors when asked: float32, little-endian, in base64. */
export function toBase64(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [i, value] of values.entries()) bytes.writeFloatLE(value, i * 4)
  return bytes.toString('base64')
}

export const schemaText = (schema: unknown): Json => object(typeof schema === 'string' ? JSON.parse(schema) : schema)
