import type { Family } from './form.ts'

/** What a model answers, piece by piece: readers make it of any dialect, writers say it in the client's. Contract: 5.4. */
export type ChatEvent =
  | { readonly kind: 'start'; readonly id?: string; readonly model?: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly family: Family; readonly text: string }
  /** Ends the reasoning before it. */
  | { readonly kind: 'signature'; readonly signature: string }
  | { readonly kind: 'sealed'; readonly data: string }
  /** A call begins; `index` counts them from 0. */
  | {
      readonly kind: 'call'
      readonly index: number
      readonly id: string
      readonly name: string
      readonly signature?: string
    }
  /** A piece of its arguments as JSON text. */
  | { readonly kind: 'arguments'; readonly index: number; readonly text: string }
  /** What is known so far; a later one replaces it. */
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'stop'; readonly reason: StopReason; readonly sequence?: string }
  /** The provider breaks off: what it said, and the name of it that stands beside. */
  | { readonly kind: 'error'; readonly data: string; readonly name?: string }

/** What an answer is made of. */
export type Said = Exclude<ChatEvent, { kind: 'error' }>

export type StopReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'malformed'

/** Tokens of a call. Contract: gateway.md 2.6, 5.5. */
export interface Usage {
  /** Of the whole prompt, cached parts included. */
  readonly input: number
  readonly cacheRead: number
  /** Kept for five minutes. */
  readonly cacheWrite: number
  readonly cacheWrite1h: number
  /** Reasoning included. */
  readonly output: number
  readonly reasoning: number
}

export const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, output: 0, reasoning: 0 }

/** The beginning of an answer that tells this much of itself. */
export const startOf = (told: { id?: string | null | undefined; model?: string | null | undefined }): ChatEvent => ({
  kind: 'start',
  ...(typeof told.id === 'string' && { id: told.id }),
  ...(typeof told.model === 'string' && { model: told.model }),
})

/** An answer that is none of its dialect. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError'
}
