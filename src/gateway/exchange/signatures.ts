import type { Clock } from '../../base/clock.ts'
import type { CallPart, ChatRequest, Part, ReasoningPart, Turn } from '../chat/form.ts'
import { isSigned } from '../chat/target.ts'

const KEPT_MS = 3_600_000
const MAX_ENTRIES = 50_000
const MAX_BYTES = 32 * 1024 * 1024

/** What a provider wants back with a call: Claude its thoughts, Gemini a signature. */
export interface Signed {
  readonly thoughts: readonly ReasoningPart[]
  readonly signature?: string
}

interface Entry extends Signed {
  readonly until: number
  readonly bytes: number
}

/**
 * Signatures by organization and tool-call id, for an hour and in memory, for clients that drop them; the oldest go first
 * when there are too many. Contract: gateway.md 5.3.
 */
export class Signatures {
  readonly #clock: Clock
  /** The oldest first. */
  readonly #entries = new Map<string, Entry>()
  #bytes = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  keep(organizationId: number, callId: string, signed: Signed): void {
    const key = keyOf(organizationId, callId)
    this.#forget(key)
    const sizes = signed.thoughts.map(
      ({ text, signature = '', sealed = '' }) => [text, signature, sealed].join('').length,
    )
    const bytes = key.length + (signed.signature?.length ?? 0) + sizes.reduce((sum, size) => sum + size, 0)
    this.#entries.set(key, { ...signed, until: this.#clock.now() + KEPT_MS, bytes })
    this.#bytes += bytes
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_ENTRIES && this.#bytes <= MAX_BYTES) break
      this.#forget(oldest)
    }
  }

  find(organizationId: number, callId: string): Signed | undefined {
    const key = keyOf(organizationId, callId)
    const entry = this.#entries.get(key)
    if (entry && entry.until > this.#clock.now()) return entry
    this.#forget(key)
    return undefined
  }

  /** A request with what its client dropped put back where it was. */
  restore(request: ChatRequest, organizationId: number): ChatRequest {
    const thinks = request.effort !== undefined && request.effort !== 'none'
    return { ...request, turns: request.turns.map((turn) => this.#restoreTurn(turn, organizationId, thinks)) }
  }

  #restoreTurn({ role, parts }: Turn, organizationId: number, thinks: boolean): Turn {
    const calls = parts.filter((part) => part.kind === 'call')
    if (role !== 'assistant' || calls.length === 0) return { role, parts }
    const known = new Map(
      calls.flatMap(({ id }) => {
        const signed = this.find(organizationId, id)
        return signed ? [[id, signed] as const] : []
      }),
    )
    if (known.size === 0) return { role, parts }
    const isThought = parts.some((part) => part.kind === 'reasoning' && part.family === 'claude' && isSigned(part))
    const [first] = known.values()
    const thoughts = isThought || !thinks ? [] : (first?.thoughts ?? [])
    const signedCall = (part: CallPart): CallPart => {
      const signature = part.signature ?? known.get(part.id)?.signature
      return signature === undefined ? part : { ...part, signature }
    }
    const restored = parts.map((part): Part => (part.kind === 'call' ? signedCall(part) : part))
    return { role, parts: [...thoughts, ...restored] }
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#bytes -= entry.bytes
    this.#entries.delete(key)
  }
}

const keyOf = (organizationId: number, callId: string): string => `${organizationId} ${callId}`
