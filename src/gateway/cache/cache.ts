import type { Clock } from '../../base/clock.ts'
import type { Json } from '../chat/json.ts'
import { estimateUsage } from '../exchange/estimate.ts'
import type { AnswerCache, CacheCall, CacheResult, RunResult } from '../plane/parts.ts'
import type { AnswerSink } from '../plane/sink.ts'
import { Flight } from './flight.ts'
import { FORMS } from './form.ts'
import { mapOf } from './json.ts'
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
  /** Undefined when it gave nothing that can be shared. Never rejects. */
  readonly answer: Promise<Answer | undefined>
}

class Cache implements AnswerCache {
  readonly #store: AnswerStore
  readonly #underWay = new Map<string, UnderWay>()

  constructor(store: AnswerStore) {
    this.#store = store
  }

  async serve(call: CacheCall): Promise<CacheResult> {
    const key = keyOf(call)
    if (key === undefined) {
      await call.run(call.sink)
      return 'miss'
    }
    if (call.wish.mode === 'on') {
      const kept = this.#store.get(key)
      const underWay = this.#underWay.get(key)
      // No waiting without need: calls of one turn must find each other.
      const shared = !kept && underWay && !underWay.flight.isGone ? await joined(underWay, call.sink) : undefined
      const found = kept ?? (shared && { answer: shared, ageMs: 0 })
      if (found) {
        say(call, found.answer, found.ageMs)
        return 'hit'
      }
    }
    return this.#fly(key, call)
  }

  async #fly(key: string, call: CacheCall): Promise<CacheResult> {
    const { request, sink } = call
    const flight = new Flight(sink, request.stream ? FORMS[request.surface] : undefined)
    const run = call.run(flight)
    const answer = run.then((result) => answerOf(call, flight, result))
    const underWay = { flight, answer }
    this.#underWay.set(key, underWay)
    const whole = await answer
    if (this.#underWay.get(key) === underWay) this.#underWay.delete(key)
    const isStored = whole !== undefined && isKept(call, await run) && this.#store.set(key, whole, call.wish.ttlMs)
    flight.land(isStored)
    return isStored ? 'stored' : 'miss'
  }
}

/** What a call under way answers; undefined when that is nothing to share, or when the client goes meanwhile. */
async function joined({ flight, answer }: UnderWay, sink: AnswerSink): Promise<Answer | undefined> {
  const leave = flight.join()
  const gone = new Promise<undefined>((resolve) => sink.onGone(() => resolve(undefined)))
  const shared = await Promise.race([answer, gone])
  leave()
  return sink.isGone ? undefined : shared
}

function answerOf({ request }: CacheCall, flight: Flight, { ok, facts }: RunResult): Answer | undefined {
  if (!ok) return undefined
  const usage = facts?.usage ?? estimateUsage(request, facts ?? { textBytes: 0 })
  const body = flight.whole(usage)
  return body && body.length <= ANSWER_BYTES ? { body, usage, dropped: flight.dropped } : undefined
}

const isKept = ({ request }: CacheCall, { facts }: RunResult): boolean =>
  request.surface === 'embeddings' || facts?.finishReason === 'stop' || facts?.finishReason === 'tool_calls'

/** Says a kept answer in the form that is asked for. */
function say({ request, sink }: CacheCall, { body, usage, dropped }: Answer, ageMs: number): void {
  const form = request.stream ? FORMS[request.surface] : undefined
  const kept: Json = form ? mapOf(JSON.parse(body.toString())) : {}
  const bytes = form ? Buffer.from(form.toStream(kept, asksUsage(request.json()) ? usage : undefined)) : body
  sink.head(200, [
    ...(form
      ? STREAM
      : ['content-type', 'application/json', 'content-length', String(bytes.length), 'x-mem-cost', '0']),
    ...(dropped === undefined ? [] : ['x-mem-dropped', dropped]),
    'x-mem-attempts',
    '0',
    'x-mem-cache',
    'hit',
    'age',
    String(Math.floor(ageMs / 1000)),
  ])
  sink.end(bytes)
}

/** Names and values in turn. */
const STREAM = Object.entries({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}).flat()

const asksUsage = (body: unknown): boolean => mapOf(mapOf(body)['stream_options'])['include_usage'] === true
