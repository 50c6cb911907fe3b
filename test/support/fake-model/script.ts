import type { Failure, ReceivedCall, Usage } from './wire.ts'

/** A tool call to make. */
export interface SaidCall {
  name: string
  /** JSON text goes out as it is, broken or not. */
  arguments: unknown
  id?: string
}

/** How the fake meets a call; what is absent is as usual. All of it is JSON. */
export interface Behaviour {
  // What it says
  /** The pieces of the answer. */
  text?: string | readonly string[]
  /** The pieces over and over, so many times. */
  repeat?: number
  reasoning?: string
  /** Made unless the prompt ends with results of tools. */
  calls?: readonly SaidCall[]
  /** In the provider's own words. */
  finish?: string
  usage?: Partial<Usage>
  /** It counts nothing. */
  noUsage?: boolean
  /** The model that says to have answered. */
  answeredModel?: string
  // How it refuses
  error?: Failure
  status?: number
  message?: string
  code?: string
  /** Instead of the provider's words: text as it is, else JSON. */
  body?: unknown
  headers?: Record<string, string>
  /** The message holds the key that came. */
  echoKey?: boolean
  /** So many seconds, as a Retry-After. */
  retryAfter?: number
  redirect?: string
  /** Fields that are refused, as unknown ones. */
  refuseFields?: readonly string[]
  // How it goes wrong in a 200
  /** An error event after so many pieces of content: 0 is the first event of the stream. */
  errorAfter?: number
  /** `json`: no JSON; `crc`: a message of an event stream damaged on the way. */
  malformed?: 'json' | 'crc'
  /** Ends without the events that end an answer. */
  noStop?: boolean
  contentType?: string
  // How it goes out
  firstByteMs?: number
  /** Between pieces. */
  paceMs?: number
  /** One long pause, after so many pieces. */
  pause?: { readonly after: number; readonly ms: number }
  /** Takes the call and says nothing; after so many pieces when a number. */
  silent?: true | number
  /** Closes after so many pieces, in the middle of the next. */
  cut?: number
  /** Breaks the connection: before any answer, or after so many pieces. */
  reset?: 'before' | number
  /** Bytes a write, or the places where writes end. */
  chunk?: number | readonly number[]
  newline?: '\r\n' | '\r'
  bom?: boolean
  /** A comment before each event. */
  comments?: boolean
}

/** A behaviour for some calls: the first rule that fits is followed. */
export interface Rule extends Behaviour {
  /** The n-th call that asks for an answer since the script was set, from 1. */
  call?: number
  /** Stands in the address, the model's name or the prompt. */
  marker?: string
  /** How often it is followed at most. */
  times?: number
}

export type Script = Rule | readonly Rule[]

/** Follows a script. */
export class Director {
  readonly #rules: { rule: Rule; followed: number }[]
  #calls = 0

  constructor(script: Script = []) {
    const rules: readonly Rule[] = 'length' in script ? script : [script]
    this.#rules = rules.map((rule) => ({ rule, followed: 0 }))
  }

  /** What to do with a call that asks for an answer. */
  next(call: ReceivedCall): Behaviour {
    const number = ++this.#calls
    const found = this.#rules.find(
      ({ rule, followed }) =>
        (rule.call === undefined || rule.call === number) &&
        (rule.marker === undefined || call.url.includes(rule.marker) || call.raw.includes(rule.marker)) &&
        followed < (rule.times ?? Infinity),
    )
    if (!found) return {}
    found.followed++
    return found.rule
  }
}
