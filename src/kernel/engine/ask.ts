import { errorText } from '../../base/errors.ts'
import { DEPTH_MAX, isTooDeep } from '../../base/json-depth.ts'
import { accountOf, remainingIn } from '../budgets.ts'
import type { Envelope } from '../model/envelope.ts'
import type { Turn } from '../model/turn.ts'
import { ModelFailure, type ModelReply } from '../ports.ts'
import type { Begun } from './begin.ts'
import { shownBy } from './envelope.ts'
import type { Discard, Held } from './held.ts'
import { readOutcome, type Outcome } from '../model/outcome.ts'
import type { TurnParts } from './parts.ts'
import { MODEL_CALL_MS } from './reservation.ts'
import { estimateTokens } from './usage.ts'

/** What came of asking the model; the turn has what it used, whatever came. Contract: kernel-1.md 14.3 */
export type Answer = { turn: Turn } & (
  | { kind: 'outcome'; outcome: Outcome }
  | { kind: 'malformed'; errors: string[] }
  | { kind: 'failed'; failure: ModelFailure }
  | { kind: 'discarded'; reason: Discard }
)

const MAX_REPAIRS = 2

/** Asks the model for the outcome of a turn; shows it what was wrong and asks again, twice at most. */
export async function askModel(parts: TurnParts, held: Held, begun: Begun): Promise<Answer> {
  let { envelope, turn } = begun
  turn = { ...turn, usage: { ...turn.usage, hostAttempts: (turn.usage.hostAttempts ?? 0) + 1 } }
  for (;;) {
    const spare = spareMs(held, turn)
    const startedAt = parts.context.store.now()
    const reply = await callModel(parts, held, { ...begun, envelope }, spare)
    // A clock that is set back gives nothing back.
    const elapsed = Math.max(0, parts.context.store.now() - startedAt)
    if ('failure' in reply) {
      const { discard, failure, wasCut } = reply
      turn = charge(turn, discard === 'duration_budget' ? spare : elapsed, wasCut ? estimate(parts, envelope) : {})
      return discard ? { kind: 'discarded', reason: discard, turn } : { kind: 'failed', failure, turn }
    }
    turn = { ...charge(turn, elapsed, reply.usage ?? estimate(parts, envelope, reply.outcome)), ...hostOf(reply) }
    const read = reply.malformed === undefined ? readOutcome(reply.outcome, envelope) : { errors: [reply.malformed] }
    if ('outcome' in read) return { kind: 'outcome', outcome: read.outcome, turn }
    const { errors } = read
    const attempt = (turn.usage.repairAttempts ?? 0) + 1
    if (attempt > MAX_REPAIRS) return { kind: 'malformed', errors, turn }
    turn = { ...turn, usage: { ...turn.usage, repairAttempts: attempt } }
    const { outcome: answer } = reply
    envelope = { ...envelope, repair: { attempt, errors, ...(answer !== undefined && { answer }) } }
  }
}

/** The time that the budget has left for a turn, with what is set aside for it; Infinity without a bound. */
const spareMs = ({ run }: Held, { id, usage: { durationMs = 0 } }: Turn): number =>
  remainingIn(accountOf(run), 'maxDurationMs') + (run.budgetReservations[id]?.usage.durationMs ?? 0) - durationMs

/** No answer. */
interface Unanswered {
  failure: ModelFailure
  /** Nobody wants one any more. */
  discard?: Discard
  /** The model was at work. */
  wasCut: boolean
}

const TIMED_OUT = new ModelFailure('unavailable', 'the model did not answer in time')

/** One call, for as long as the budget and the time limit of calls allow. It ends with its signal, also if the host does not. */
async function callModel(
  { context, model }: TurnParts,
  held: Held,
  { envelope, reservation }: Pick<Begun, 'envelope' | 'reservation'>,
  spare: number,
): Promise<ModelReply | Unanswered> {
  const allowed = Math.min(MODEL_CALL_MS, Math.max(0, spare))
  const controller = held.beginCall(shownBy(envelope))
  const { signal } = controller
  const timer = setTimeout(() => controller.abort(), allowed)
  const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(TIMED_OUT)))
  try {
    const deadline = context.store.now() + allowed
    return signal.aborted
      ? await Promise.reject(TIMED_OUT)
      : soundOf(await Promise.race([model.propose(envelope, { signal, deadline, reservation }), aborted]))
  } catch (error) {
    if (!signal.aborted) {
      const failure = error instanceof ModelFailure ? error : new ModelFailure('unavailable', errorText(error))
      return { failure, wasCut: false }
    }
    const discard = held.discard ?? (spare < MODEL_CALL_MS ? 'duration_budget' : undefined)
    return { failure: TIMED_OUT, ...(discard && { discard }), wasCut: true }
  } finally {
    clearTimeout(timer)
    held.endCall()
  }
}

/** What of a reply can be worked with: an outcome that can be written down again, tokens that were counted. */
function soundOf({ outcome, usage, ...reply }: ModelReply): ModelReply {
  const counts = usage ? [usage.inputTokens, usage.outputTokens, usage.costMicros ?? 0] : []
  return {
    ...reply,
    ...(isTooDeep(outcome) ? { malformed: `the outcome is nested deeper than ${DEPTH_MAX} levels` } : { outcome }),
    ...(usage && counts.every((count) => Number.isSafeInteger(count) && count >= 0) && { usage }),
  }
}

type CallUsage = Partial<NonNullable<ModelReply['usage']>>

function estimate({ model }: TurnParts, envelope: Envelope, outcome?: unknown): CallUsage {
  const tokens = {
    inputTokens: estimateTokens(JSON.stringify(envelope)),
    outputTokens: outcome === undefined ? 0 : estimateTokens(JSON.stringify(outcome)),
  }
  const costMicros = model.costOf?.(tokens)
  return { ...tokens, ...(costMicros !== undefined && { costMicros }), estimated: true }
}

/** The turn with what one call more cost; in dollars only where that is known. */
function charge(turn: Turn, elapsed: number, call: CallUsage): Turn {
  const { usage } = turn
  const sum = (name: 'inputTokens' | 'outputTokens' | 'costMicros'): number => (usage[name] ?? 0) + (call[name] ?? 0)
  const isPriced = call.costMicros !== undefined
  return {
    ...turn,
    usage: {
      ...usage,
      inputTokens: sum('inputTokens'),
      outputTokens: sum('outputTokens'),
      ...(isPriced && { costMicros: sum('costMicros') }),
      durationMs: (usage.durationMs ?? 0) + elapsed,
      providerDurationMs: (usage.providerDurationMs ?? 0) + elapsed,
      ...(call.estimated && { estimated: true }),
    },
  }
}

const hostOf = ({ modelProvider, model }: ModelReply): Pick<Turn, 'modelProvider' | 'model'> => ({
  ...(modelProvider !== undefined && { modelProvider }),
  ...(model !== undefined && { model }),
})
