import { isMap } from '../../base/json.ts'
import { openAiStop, openAiUsage } from '../chat/openai/read-answer.ts'
import { openAiUsageOf } from '../chat/openai/write-answer.ts'
import type { Usage } from '../chat/events.ts'
import { parseJson, type Json } from '../chat/json.ts'
import { bytesOf, readFrame, stringEnd, valueAt } from '../relay/frames.ts'
import { RepeatedFrame } from '../relay/repeated-frame.ts'
import { isMistrals, plainChoices } from './mistral-answer.ts'
import { emptyFault, eventFault, type FaultView } from './faults.ts'
import type { StreamStep } from './exchange.ts'
import { Facts } from './facts.ts'
import type { Scan } from './scan.ts'

const DONE_LENGTH = 32
const QUOTE = 0x22
const OPEN_MAP = 0x7b
const NULL = 0x6e

export interface OpenAiScanOptions {
  /** The client asked for the usage chunk. */
  readonly wantsUsage: boolean
  /** The provider was asked for it all the same: it is taken out. */
  readonly hidesUsage: boolean
  readonly isMistral: boolean
  /** How many were asked for: each has an end of its own. */
  readonly choices: number
  readonly estimate: (facts: Facts) => Usage
  readonly view: FaultView
}

/** Chunks of chat completions. */
export class OpenAiScan implements Scan {
  readonly facts = new Facts()
  state: StreamStep['state'] = 'waiting'
  readonly #options: OpenAiScanOptions
  readonly #last = new RepeatedFrame()
  /** Of the first chunk with a choice: what stays the same in all. */
  #head: Json | undefined
  /** Choices that have come to their end. */
  #finished = 0
  #saidUsage = false
  /** In a chunk of its own. */
  #saidChunk = false

  constructor(options: OpenAiScanOptions) {
    this.#options = options
  }

  repeats(chunk: Buffer): boolean {
    const bytes = this.#last.bytesOf(chunk)
    if (bytes > 0) this.facts.textBytes += bytes
    return bytes >= 0
  }

  frame(raw: string): string | undefined {
    if (raw.length < DONE_LENGTH && readFrame(raw).data === '[DONE]') {
      if (!this.#head) throw emptyFault(this.facts)
      this.state = 'stopped'
      return this.#missingUsage(raw)
    }
    const isRare =
      this.#head === undefined ||
      isPresent(raw, 'usage"') ||
      isPresent(raw, 'error"') ||
      raw.startsWith('"error"', valueAt(raw, 'object"')) ||
      (this.#options.isMistral && isMistrals(raw))
    if (isRare) return this.#parsed(raw)
    this.#content(raw)
    const reasons = stringsOf(raw, 'finish_reason"')
    this.#finish(reasons)
    if (reasons.length === 0 && this.state === 'content') this.#last.learn(raw, SAID)
    return undefined
  }

  end(): string | undefined {
    if (this.state === 'stopped') return ''
    if (this.#finished < this.#options.choices) return undefined
    this.state = 'stopped'
    return this.#missingUsage('')
  }

  #content(raw: string): void {
    const bytes = this.facts.textBytes
    for (const name of SAID) this.facts.textBytes += bytesOf(raw, name)
    if (this.facts.textBytes > bytes || (this.state !== 'content' && CALLS.some((name) => isPresent(raw, name)))) {
      this.#reach('content')
    }
  }

  #reach(state: 'started' | 'content'): void {
    if (this.state === 'waiting' || state === 'content') this.state = state
  }

  /** Some providers give an empty reason in every chunk, which is none. */
  #finish(reasons: readonly string[]): void {
    for (const reason of reasons.filter((each) => each !== '')) {
      this.facts.finishReason = openAiStop(reason)
      this.state = ++this.#finished < this.#options.choices ? 'content' : 'finished'
    }
  }

  #parsed(raw: string): string | undefined {
    const { data } = readFrame(raw)
    const chunk = parseJson(data)
    if (!chunk) return undefined // a comment, or nothing that a client could read either
    const { error, object, choices, usage, x_groq: groq, model, id } = chunk
    if ((error !== undefined && error !== null) || object === 'error')
      throw eventFault(data, this.#options.view, undefined, this.facts)
    this.#reach('started')
    if (typeof model === 'string' && model !== '') this.facts.responseModel = model
    if (typeof id === 'string' && id !== '') this.facts.responseId = id
    const hasChoice = Array.isArray(choices) && choices.length > 0
    if (hasChoice) this.#head ??= chunk
    const told = openAiUsage(usage)
    const counted = told ?? openAiUsage(isMap(groq) ? groq['usage'] : undefined)
    if (counted) this.facts.usage = counted
    const plain = this.#options.isMistral ? plainChoices(chunk) : false
    const text = plain ? toLatin1(JSON.stringify(chunk)) : raw
    this.#content(text)
    this.#finish(stringsOf(text, 'finish_reason"'))
    if (told) this.#saidUsage = true
    if (told && !hasChoice) {
      if (this.#options.hidesUsage || this.#saidChunk) return ''
      this.#saidChunk = true
    }
    return plain ? `data: ${text}\n\n` : undefined
  }

  /** The usage chunk goes before what ends the stream. */
  #missingUsage(last: string): string | undefined {
    const { wantsUsage, estimate } = this.#options
    if (!wantsUsage || this.#saidUsage) return last === '' ? '' : undefined
    this.#saidUsage = true
    const { id, created, model } = this.#head ?? {}
    const usage = openAiUsageOf(this.facts.usage ?? estimate(this.facts))
    const chunk = { id, object: 'chat.completion.chunk', created, model, choices: [], usage }
    return `data: ${toLatin1(JSON.stringify(chunk))}\n\n${last}`
  }
}

const SAID = ['content"', 'reasoning_content"', 'reasoning"', 'refusal"', 'arguments"']
const CALLS = ['tool_calls"', 'function_call"', 'audio"']

const toLatin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** A member of this name holds more than null. */
function isPresent(raw: string, name: string): boolean {
  for (let at = valueAt(raw, name); at >= 0; at = valueAt(raw, name, at)) {
    const first = raw.charCodeAt(at)
    if (first !== NULL && (first === OPEN_MAP || first === QUOTE || raw.charCodeAt(at + 1) !== 0x5d)) return true
  }
  return false
}

/** All strings that a member of this name holds. */
function stringsOf(raw: string, name: string): string[] {
  const strings: string[] = []
  for (let at = valueAt(raw, name); at >= 0; at = valueAt(raw, name, at)) {
    if (raw.charCodeAt(at) === QUOTE) strings.push(raw.slice(at + 1, stringEnd(raw, at) - 1))
  }
  return strings
}
