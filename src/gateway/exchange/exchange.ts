import type { Usage } from '../chat/events.ts'
import type { GatewayError } from '../errors.ts'
import type { FailureClass, Surface } from '../model.ts'
import type { Member } from '../relay/body.ts'
import type { Candidate } from '../routing/candidate.ts'

/** An inference request as it came, judged but not parsed. */
export interface InferenceRequest {
  readonly surface: Surface
  readonly body: Buffer
  /** The top-level members of the body. */
  readonly members: ReadonlyMap<string, Member>
  readonly model: string
  readonly stream: boolean
  /** `x-mem-strict`: 400 instead of a dropped field. */
  readonly strict: boolean
  readonly organizationId: number
  /** The smallest of key's and alias's `max_output_tokens`: a larger or absent cap becomes it. */
  readonly maxOutputTokens: number | undefined
  /** The whole body as JSON, parsed once, when a translation needs it. */
  json(): unknown
}

/**
 * One request as one candidate takes it, and its answer as the client reads it: a relay or a translation. Made anew for
 * each attempt; knows no sockets. Contract: gateway.md 5, 6.
 */
export interface Exchange {
  readonly body: Buffer
  /** For `x-mem-dropped`. */
  readonly dropped: readonly string[]
  /** A whole 200 answer. @throws UpstreamFault for one that is none */
  answer(body: Buffer): JsonAnswer
  /** For a 200 that streams. */
  stream(): AnswerStream
  /** What a refusal of the provider means, and how the client is told. */
  fault(status: number, headers: Readonly<Record<string, string>>, body: Buffer): UpstreamFault
}

export interface JsonAnswer {
  /** In the client's dialect; the same bytes on a relay. */
  readonly body: Buffer
  readonly facts: AnswerFacts
}

/** What an answer told of itself, so far. */
export interface AnswerFacts {
  readonly usage: Usage | undefined
  readonly finishReason: string | undefined
  readonly responseModel: string | undefined
  /** UTF-8 bytes of the text said: for estimates where no usage was reported. */
  readonly textBytes: number
}

export interface AnswerStream {
  /** What these bytes of the provider mean. @throws UpstreamFault for an error event or a malformed one */
  read(chunk: Buffer): StreamStep
  /** The provider ended. @throws UpstreamFault when its stop event never came */
  end(): StreamStep
  /** The last bytes of a stream that breaks off after commit, as the client's dialect tells an error. */
  fail(error: GatewayError, requestId: string): Buffer
  /** Keeps a silent stream open. */
  readonly heartbeat: Buffer
  readonly facts: AnswerFacts
}

export interface StreamStep {
  /** For the client; may be none. */
  readonly bytes: readonly Buffer[]
  /** `waiting` before anything but pings, `started` after a valid start event, `content` from the first content on, `stopped` after the stop event. */
  readonly state: 'waiting' | 'started' | 'content' | 'stopped'
}

/** An attempt that failed, as the provider told it. */
export class UpstreamFault extends Error {
  override readonly name = 'UpstreamFault'
  readonly class: FailureClass
  /** What the client is told, if it is to be told: redacted. */
  readonly error: GatewayError
  /** How long the provider asks to be left alone. */
  readonly retryAfterMs: number | undefined
  readonly status: number | undefined

  constructor(failure: FailureClass, error: GatewayError, { status, retryAfterMs }: { status?: number; retryAfterMs?: number } = {}) {
    super(error.message)
    this.class = failure
    this.error = error
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

/** Makes the exchange between a request and a candidate. @throws GatewayError 400 for what cannot be said there */
export type MakeExchange = (request: InferenceRequest, candidate: Candidate) => Exchange
