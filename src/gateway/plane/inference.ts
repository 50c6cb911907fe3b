import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.ts'
import { roughInputTokens } from '../exchange/estimate.ts'
import { smaller } from '../exchange/output-cap.ts'
import type { Selection } from '../routing/candidate.ts'
import { Call } from './call.ts'
import { CLOSED, internalError } from './faults.ts'
import { forwardable } from './forwarded.ts'
import { Inference, judgeBody, type JudgedBody } from './judge.ts'
import type { PlaneParts, RunResult } from './parts.ts'
import { GoneError, readBody } from './read-body.ts'
import { refuse, type Family } from './refusal.ts'
import type { AnswerSink } from './sink.ts'
import type { Visit } from './visit.ts'
import type { Watch } from './watch.ts'
import { wishOf } from './wish.ts'

/** Names of pins may hold what headers carry only percent-encoded or as Latin-1. */
const headerOf = (value: string | string[] | undefined): string | undefined =>
  value === undefined || value === '' ? undefined : String(value)

/**
 * Takes an inference request through its checks, in the order of gateway.md 3.2, to its answer. Callbacks and not promises
 * lead to the call: on the way of every request each promise is felt.
 * @param done is called when it is over
 */
export function serveInference(
  parts: PlaneParts,
  watch: Watch,
  visit: Visit,
  { message, family, isOverloaded }: { message: IncomingMessage; family: Family; isOverloaded: boolean },
  done: () => void,
): void {
  const end = (): void => {
    visit.answered()
    done()
  }
  const fail = (error: unknown): void => {
    refuseVisit(parts, visit, error, family)
    end()
  }
  try {
    if (isOverloaded) throw new GatewayError('overloaded', 'too many calls are under way', { retryAfterMs: 1000 })
    parts.metering.admit()
  } catch (error) {
    return fail(error)
  }
  const since = parts.monotonic()
  readBody(message, mostBytes(parts, visit), (body) => {
    if (body instanceof Error) return fail(body)
    visit.bodyMs = parts.monotonic() - since
    visit.bytesIn = body.length
    visit.turn.call(() => {
      try {
        answer({ parts, watch, visit, family }, body, end, fail)
      } catch (error) {
        fail(error)
      }
    })
  })
}

/** What an organization takes at most. */
export const mostBytes = ({ settings }: PlaneParts, { caller }: Visit): number =>
  Math.min(caller.state.settings.max_request_bytes ?? settings.maxRequestBytes, settings.maxRequestBytes)

interface Asked {
  readonly parts: PlaneParts
  readonly watch: Watch
  readonly visit: Visit
  readonly family: Family
}

/**
 * @param done is called when the client has its answer, `fail` when it has none
 * @throws GatewayError what is wrong with the request, before any call is made
 */
function answer(
  { parts, watch, visit, family }: Asked,
  body: Buffer,
  done: () => void,
  fail: (error: unknown) => void,
): void {
  const { request, selection } = select(parts, visit, body, false)
  const inputTokens = roughInputTokens(request)
  try {
    visit.hold = parts.limits.take(visit.caller, inputTokens)
  } finally {
    visit.client.addHeaders(parts.limits.headers(visit.caller))
  }
  const clientLimitMs = limitOf(headerOf(visit.headers['x-stainless-timeout']))
  const order = { visit, request, selection, family, inputTokens, clientLimitMs }
  const callInto = (sink: AnswerSink): Call => (visit.call = new Call(parts, watch, order, sink))
  const wish = wishOf(visit.headers, selection.alias)
  if (!wish) return callInto(visit.client).run(done, fail)
  const { caller, client: sink } = visit
  const run = (into: AnswerSink): Promise<RunResult> =>
    new Promise((resolve, reject) => callInto(into).run(resolve, reject))
  const [pin, forwarded] = [pinOf(visit), forwardable(visit.headers)]
  const endsAt = visit.startedAt + Math.min(parts.settings.timeouts.total, clientLimitMs)
  const leftMs = (): number => endsAt - parts.monotonic()
  const overheadMs = (): number => visit.overheadMs(0)
  const served = parts.cache.serve({ request, caller, pin, forwarded, wish, leftMs, overheadMs, sink, run })
  void throughCache(visit, family, served, done, fail)
}

async function throughCache(
  visit: Visit,
  family: Family,
  served: ReturnType<PlaneParts['cache']['serve']>,
  done: () => void,
  fail: (error: unknown) => void,
): Promise<void> {
  try {
    const result = await served
    if (result instanceof GatewayError) endShared(visit, result, family)
    else if (result === 'hit') endHit(visit)
    visit.answered(result instanceof GatewayError ? 'miss' : result)
  } catch (error) {
    return fail(error)
  }
  done()
}

const pinOf = (visit: Visit): string | undefined => headerOf(visit.headers['x-mem-credential'])

/** @throws GatewayError 400, 403, 404 */
export function select(
  parts: PlaneParts,
  visit: Visit,
  body: Buffer,
  countOnly: boolean,
): { request: Inference; selection: Selection } {
  const { caller, surface } = visit
  const judged = judge(visit, body, countOnly)
  visit.model = judged.model
  visit.stream = judged.stream
  const { headers } = visit
  const fallback = headers['x-mem-fallback'] !== 'off'
  const selection = parts.router.select(caller, judged.model, surface, { pin: pinOf(visit), fallback })
  visit.aliasId = selection.alias?.id
  const request = new Inference(judged, {
    surface,
    strict: headers['x-mem-strict'] === '1',
    organizationId: caller.state.id,
    countOnly,
    maxOutputTokens: smaller(caller.key?.maxOutputTokens, selection.alias?.max_output_tokens),
  })
  visit.request = request
  return { request, selection }
}

/** @throws GatewayError 400; of a body that is compressed it says so */
function judge({ surface, headers }: Visit, body: Buffer, countOnly: boolean): JudgedBody {
  try {
    return judgeBody(surface, body, countOnly)
  } catch (error) {
    const encoding = headers['content-encoding']
    if (encoding === undefined || !(error instanceof GatewayError) || error.code !== 'invalid_json') throw error
    const message = `a body with Content-Encoding ${encoding} cannot be read: send it uncompressed`
    throw new GatewayError('invalid_json', message)
  }
}

/** Milliseconds of `x-stainless-timeout`, which is in seconds; what is none bounds nothing. */
function limitOf(seconds: string | undefined): number {
  const ms = Number(seconds ?? Number.NaN) * 1000
  return ms > 0 ? ms : Infinity
}

/** An answer that cost nobody a call. */
function endHit(visit: Visit): void {
  const { client } = visit
  const isOk = client.status === 200
  const outcome = client.isGone ? 'client_closed' : isOk ? 'cached' : 'error'
  visit.end({ outcome, status: client.isGone ? CLOSED : client.status, bytesOut: client.bytesOut })
}

/** The call of another, which this one waited for, has failed: so has this one, and a call of its own would too. */
function endShared(visit: Visit, error: GatewayError, family: Family): void {
  const { code, status } = error
  visit.end({ outcome: 'error', status, code, bytesOut: 0 })
  refuse(visit.client, error, family, ['x-mem-attempts', '0', 'x-mem-cache', 'miss', 'x-should-retry', 'false'])
}

function refuseVisit({ log }: PlaneParts, visit: Visit, error: unknown, family: Family): void {
  const { client } = visit
  if (error instanceof GoneError || client.isGone) {
    return visit.end({ outcome: 'client_closed', status: CLOSED, bytesOut: client.bytesOut })
  }
  const known = error instanceof GatewayError ? error : undefined
  if (!known) log.error({ err: error, request_id: family.requestId }, 'a call failed')
  const told = known ?? internalError()
  visit.end({ outcome: known ? 'rejected' : 'error', status: told.status, code: told.code, bytesOut: 0 })
  if (!client.hasHead) refuse(client, told, family)
  else client.end()
}
