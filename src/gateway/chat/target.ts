import type { ChatRequest, Effort, Part } from './form.ts'

/** What a writer knows of the model that it writes for. Contract: gateway.md 2.1, 2.5. */
export interface Target {
  readonly model: string
  /** Temperature and the like are taken. */
  readonly sampling: boolean
  /** How thinking is asked for. */
  readonly reasoning: 'none' | 'adaptive' | 'budget' | 'level' | 'effort'
  readonly efforts?: readonly Effort[]
  /** The output cap where the client names none and the provider wants one. */
  readonly defaultMaxTokens: number
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
}

/** A client that insists on a tool gets no thinking from Claude, which refuses both together. */
export const forcesTool = ({ choice }: ChatRequest): boolean => choice === 'required' || typeof choice === 'object'

/**
 * Whether thinking can go on: not where the last turn of the assistant holds calls without the signed thoughts that led to
 * them.
 */
export function canThink({ turns }: ChatRequest): boolean {
  const last = turns.findLast(({ role }) => role === 'assistant')
  if (!last?.parts.some(({ kind }) => kind === 'call') || turns.at(-1)?.parts[0]?.kind !== 'result') return true
  return last.parts.some((part) => part.kind === 'reasoning' && part.family === 'claude' && isSigned(part))
}

/** Whether it is more than spaces, which Claude refuses; models say such before their calls. */
export const isSaid = (part: Part): boolean => part.kind !== 'text' || part.text.trim() !== ''

export const isSigned = ({ signature, sealed }: { signature?: string; sealed?: string }): boolean =>
  signature !== undefined || sealed !== undefined
