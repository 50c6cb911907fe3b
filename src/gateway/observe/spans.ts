import { randomBytes } from 'node:crypto'
import type { InferenceRequest } from '../exchange/exchange.ts'
import { nameTold } from '../exchange/facts.ts'
import type { Kind } from '../model.ts'
import type { FinishedAttempt, FinishedCall } from '../plane/parts.ts'

export interface Span {
  /** Hex, as the others. */
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  /** Epoch ms. */
  readonly startedAt: number
  readonly endedAt: number
  /** No content. Undefined ones are left out. */
  readonly attributes: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
  readonly isFault: boolean
}

/** Names of OpenTelemetry's conventions; else the kind. */
const PROVIDERS: Partial<Record<Kind, string>> = {
  gemini: 'gcp.gemini',
  'azure-openai': 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  vertex: 'gcp.vertex_ai',
  mistral: 'mistral_ai',
}

/**
 * A client span for each attempt of a call, in the trace that the client began; none where the client has said that the
 * trace is not kept. Contract: gateway.md 11.
 */
export function spansOf({ request, attempts, traceparent }: FinishedCall): Span[] {
  const { traceId = randomHex(16), spanId: parentSpanId, isKept = true } = parse(traceparent)
  if (!isKept) return []
  return attempts.map((attempt) => ({
    traceId,
    spanId: randomHex(8),
    parentSpanId,
    name: `${operationOf(request)} ${attempt.candidate.model}`,
    startedAt: attempt.startedAt,
    endedAt: attempt.startedAt + attempt.durationMs,
    attributes: { ...asked(request, attempt), ...answered(attempt) },
    isFault: attempt.class !== 'ok',
  }))
}

const operationOf = (request: InferenceRequest | undefined): string =>
  request?.surface === 'embeddings' ? 'embeddings' : 'chat'

function asked(
  request: InferenceRequest | undefined,
  { candidate, number, origin }: FinishedAttempt,
): Span['attributes'] {
  const { kind, id } = candidate.upstream.credential
  const address = origin === undefined ? undefined : new URL(origin)
  return {
    'gen_ai.operation.name': operationOf(request),
    'gen_ai.provider.name': PROVIDERS[kind] ?? kind,
    'gen_ai.request.model': candidate.model,
    'gen_ai.request.stream': request?.stream,
    'gen_ai.request.max_tokens': numberIn(request, 'max_completion_tokens', 'max_tokens', 'max_output_tokens'),
    'gen_ai.request.temperature': numberIn(request, 'temperature'),
    'server.address': address?.hostname,
    'server.port': address && Number(address.port || (address.protocol === 'https:' ? 443 : 80)),
    'mem.credential.id': id,
    'mem.attempt': number,
  }
}

function answered({ facts, firstChunkMs, class: outcome }: FinishedAttempt): Span['attributes'] {
  const { usage, finishReason, responseModel, responseId } = facts ?? {}
  return {
    'gen_ai.response.model': nameTold(responseModel),
    'gen_ai.response.id': nameTold(responseId),
    'gen_ai.response.finish_reasons': finishReason === undefined ? undefined : [finishReason],
    'gen_ai.response.time_to_first_chunk': firstChunkMs === undefined ? undefined : firstChunkMs / 1000,
    'gen_ai.usage.input_tokens': usage?.input,
    'gen_ai.usage.output_tokens': usage?.output,
    'gen_ai.usage.cache_read.input_tokens': usage?.cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': usage && usage.cacheWrite + usage.cacheWrite1h,
    'gen_ai.usage.reasoning.output_tokens': usage?.reasoning,
    'error.type': outcome === 'ok' ? undefined : outcome,
  }
}

/** The first of these top-level members that is a number. */
function numberIn(request: InferenceRequest | undefined, ...names: string[]): number | undefined {
  for (const name of names) {
    const member = request?.members.get(name)
    if (!request || !member || member.end - member.start > 30) continue
    const value = Number(request.body.toString('latin1', member.start, member.end))
    if (Number.isFinite(value)) return value
  }
  return undefined
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-)/

/** W3C trace context. */
function parse(traceparent = ''): { traceId?: string; spanId?: string; isKept?: boolean } {
  const [, traceId, spanId, flags = ''] = TRACEPARENT.exec(traceparent) ?? []
  if (traceId === undefined || spanId === undefined) return {}
  return { traceId, spanId, isKept: (Number.parseInt(flags, 16) & 1) === 1 }
}

const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex')
