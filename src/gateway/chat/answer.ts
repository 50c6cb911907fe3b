import type { Said, StopReason, Usage } from './events.ts'
import type { Family } from './form.ts'

/** What a whole answer holds, in the order in which it was said. */
export interface Answer {
  readonly pieces: readonly Piece[]
  readonly reason: StopReason
  readonly sequence?: string
  readonly usage?: Usage
}

export type Piece =
  | { readonly kind: 'text'; text: string }
  | { readonly kind: 'reasoning'; readonly family: Family; text: string; signature?: string }
  | { readonly kind: 'sealed'; readonly data: string }
  | {
      readonly kind: 'call'
      readonly index: number
      readonly id: string
      readonly name: string
      text: string
      readonly signature?: string
    }

/** Puts the pieces of an answer together. */
export function collect(events: readonly Said[]): Answer {
  const pieces: Piece[] = []
  const calls = new Map<number, Extract<Piece, { kind: 'call' }>>()
  let stop: Extract<Said, { kind: 'stop' }> | undefined
  let usage: Usage | undefined
  for (const event of events) {
    const last = pieces.at(-1)
    if (event.kind === 'text') {
      if (last?.kind === 'text') last.text += event.text
      else pieces.push({ kind: 'text', text: event.text })
    } else if (event.kind === 'reasoning') {
      if (last?.kind === 'reasoning' && last.signature === undefined) last.text += event.text
      else pieces.push({ kind: 'reasoning', family: event.family, text: event.text })
    } else if (event.kind === 'signature') {
      if (last?.kind === 'reasoning') last.signature = event.signature
      else pieces.push({ kind: 'reasoning', family: 'claude', text: '', signature: event.signature })
    } else if (event.kind === 'sealed') {
      pieces.push(event)
    } else if (event.kind === 'call') {
      const call = { ...event, text: '' }
      calls.set(event.index, call)
      pieces.push(call)
    } else if (event.kind === 'arguments') {
      const call = calls.get(event.index)
      if (call) call.text += event.text
    } else if (event.kind === 'usage') usage = event.usage
    else if (event.kind === 'stop') stop = event
  }
  return {
    pieces,
    reason: stop?.reason ?? (calls.size > 0 ? 'tool_calls' : 'stop'),
    ...(stop?.sequence !== undefined && { sequence: stop.sequence }),
    ...(usage && { usage }),
  }
}
