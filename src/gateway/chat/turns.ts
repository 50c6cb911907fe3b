import { UnsayableError, type CallPart, type Family, type Part, type ResultPart, type Turn } from './form.ts'
import { isSaid, isSigned } from './target.ts'

/**
 * Brings turns into the order that every provider takes: equal roles in a row merged, empty text removed, each result
 * right behind the call it answers. Contract: gateway.md 5.3.
 * @throws UnsayableError for a result of an unknown call.
 */
export function arrangeTurns(turns: readonly Turn[], param = 'messages'): Turn[] {
  // Some providers number the calls of each answer anew: a result belongs to the last call of its id before it.
  const calls = new Map<string, CallPart>()
  const results = new Map<Part, ResultPart>()
  for (const part of turns.flatMap((turn) => turn.parts)) {
    if (part.kind === 'call') calls.set(part.id, part)
    if (part.kind !== 'result') continue
    const call = calls.get(part.id)
    if (!call) throw new UnsayableError('invalid_value', param, `there is no tool call ${part.id} before its result`)
    const content = [...(results.get(call)?.content ?? []), ...part.content.filter((each) => !isEmpty(each))]
    results.set(call, { ...part, name: call.name, content })
  }
  const arranged: { role: Turn['role']; parts: Part[] }[] = []
  const append = (role: Turn['role'], parts: readonly Part[]): void => {
    if (parts.length === 0) return
    const last = arranged.at(-1)
    if (last?.role === role) last.parts.push(...parts)
    else arranged.push({ role, parts: [...parts] })
  }
  for (const [i, { role, parts }] of turns.entries()) {
    append(
      role,
      parts.filter((part) => part.kind !== 'result' && !isEmpty(part)),
    )
    // Calls of merged assistant turns are answered behind the last of them.
    if (role === 'assistant' && turns[i + 1]?.role !== 'assistant') append('user', answersOf(arranged.at(-1), results))
  }
  return arranged
}

/** Without turns of nothing but thoughts and spaces that the target does not take: it refuses turns that hold nothing. */
export function withoutSilent(turns: readonly Turn[], family: Family): readonly Turn[] {
  const isClaude = family === 'claude'
  const isTaken = (part: Part): boolean =>
    part.kind === 'reasoning' ? part.family === family && (!isClaude || isSigned(part)) : !isClaude || isSaid(part)
  const said = turns.filter(({ parts }) => parts.some(isTaken))
  return said.length < turns.length ? arrangeTurns(said) : turns
}

const isEmpty = (part: Part): boolean => part.kind === 'text' && part.text === ''

function answersOf(turn: Turn | undefined, results: ReadonlyMap<Part, ResultPart>): ResultPart[] {
  return turn?.role === 'assistant' ? turn.parts.flatMap((part) => results.get(part) ?? []) : []
}
