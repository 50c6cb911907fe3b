import type { Clock } from '../../base/clock.ts'
import { jsonOf } from '../../base/json.ts'
import type { Json } from '../chat/json.ts'
import { openAiStop } from '../chat/openai/read-answer.ts'
import { GatewayError } from '../errors.ts'
import { estimateUsage } from '../exchange/estimate.ts'
import { lateFault } from '../plane/faults.ts'
import { STREAM_HEADERS } from '../plane/sink.ts'
import type { AnswerCache, CacheCall, CacheResult, RunResult } from '../plane/parts.ts'
import { Flight } from './flight.ts'
import { FORMS } from './form.ts'
import { mapOf, mapsOf, textOf } from './json.ts'
import { keyOf } from './key.ts'
import { AnswerStore, type Answer } from './store.ts'

const ANSWER_BYTES = 1024 * 1024

/**
 * Answers kept in memory, and calls under way that equal ones share. Contract: gateway.md 8.
 * @param bytes of all answers together, `gateway.cache_bytes`
 */
export const createCache = (bytes: number, clock: Clock): AnswerCache => new Cache(new AnswerStore(bytes, clock))

interface UnderWay {
  readonly flight: Flight
  readonly run: Promise<RunResult>
  /** Or why the provider gave none; undefined when there is nothing to share. */
  readonly answer: Promise<Answer | GatewayError | undefined>
}

class Cache implements AnswerCache {
  readonly #store: AnswerStore
  readonly #underWay = new Map<string, UnderWay>()

  constructor(store: AnswerStore) {
    this.#store = store
  }

  async serve(call: CacheCall): Promise<CacheResult | GatewayError> {
    const key = keyOf(call)
    if (key === undefined) {
      await call.run(call.sink)
      return 'miss'
    }
    while (call.wish.mode === 'on') {
      const kept = this.#store.get(key)
      if (kept) return say(call, kept.answer, kept.ageMs)
      const underWay = this.#underWay.get(key)
      // No waiting without need: calls of one turn must find each other.
      if (!underWay || underWay.flight.isGone) break
      const shared = await joined(underWay, call)
      if (shared instanceof GatewayError) return shared
      if (shared) return say(call, shared, 0)
      // Where the other call ended for reasons of its own, one of those who waited makes the next, and the rest wait for that.
      if (call.sink.isGone || (await underWay.run).ok) break
    }
    return this.#fly(key, call)
  }

  async #fly(key: string, call: CacheCall): Promise<CacheResult> {
    const { request, sink } = call
    const flight = new Flight(sink, request.stream ? FORMS[request.surface] : undefined)
    const run = call.run(flight)
    const answer = run.then((result) => result.shared ?? answerOf(call, flight, result))
    const underWay = { flight, run, answer }
    this.#underWay.set(key, underWay)
    const whole = await answer.finally(() => {
      if (this.#underWay.get(key) === underWay) this.#underWay.delete(key)
    })
    const isStored =
      whole !== undefined &&
      !(whole instanceof GatewayError) &&
      isKept(call, whole, await run) &&
      this.#store.set(key, whole, call.wish.ttlMs)
    flight.land(isStored)
    return isStored ? 'stored' : 'miss'
  }
}

/** What a call under way comes to; undefined when that is nothing to share, or when the client goes meanwhile. */
async function joined({ flight, answer }: UnderWay, { sink, leftMs }: CacheCall): UnderWay['answer'] {
  const leave = flight.join()
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<GatewayError | undefined>((resolve) => {
    sink.onGone(() => resolve(undefined))
    timer = setTimeout(() => resolve(lateFault().error), leftMs())
  })
  const shared = await Promise.race([answer, over])
  clearTimeout(timer)
  leave()
  return sink.isGone ? undefined : shared
}

function answerOf({ request }: CacheCall, flight: Flight, { ok, facts }: RunResult): Answer | undefined {
  if (!ok) return undefined
  const usage = facts?.usage ?? estimateUsage(request, facts ?? { textBytes: 0 })
  const body = flight.whole(usage)
  return body && { body, usage, dropped: flight.dropped }
}

const isKept = ({ request }: CacheCall, { body }: Answer, { facts }: RunResult): boolean =>
  body.length <= ANSWER_BYTES &&
  (request.surface === 'embeddings' ||
    (isWell(facts?.finishReason) && (request.surface !== 'chat' || choicesOf(body).every(isWhole))))

const isWell = (reason: string | undefined): boolean => reason === 'stop' || reason === 'tool_calls'

/** The facts tell how one choice ended, and there may be more. */
const isWhole = ({ finish_reason: reason }: Json): boolean =>
  textOf(reason) !== '' && isWell(openAiStop(textOf(reason)))

const choicesOf = (body: Buffer): Json[] => mapsOf(mapOf(jsonOf(body.toString()))['choices'])

/** Says an answer in the form that is asked for. */
function say({ request, caller, overheadMs, sink }: CacheCall, { body, usage, dropped }: Answer, ageMs: number): 'hit' {
  const form = request.stream ? FORMS[request.surface] : undefined
  const kept: Json = form ? mapOf(JSON.parse(body.toString())) : {}
  const told = asksUsage(request.json()) ? usage : undefined
  const bytes = form ? Buffer.from(form.toStream(kept, told, body)) : body
  sink.head(200, [
    ...(form ? STREAM_HEADERS : ['content-type', 'application/json', 'content-length', String(bytes.length)]),
    ...(!form && caller.state.settings.cost_tracking ? ['x-mem-cost', '0'] : []),
    ...(dropped === undefined ? [] : ['x-mem-dropped', dropped]),
    'x-mem-attempts',
    '0',
    'x-mem-overhead-ms',
    overheadMs().toFixed(2),
    'x-mem-cache',
    'hit',
    'age',
    String(Math.floor(ageMs / 1000)),
  ])
  sink.end(bytes)
  return 'hit'
}

const asksUsage = (body: unknown): boolean => mapOf(mapOf(body)['stream_options'])['include_usage'] === true
