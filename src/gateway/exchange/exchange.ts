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
  /** Bytes of the longest part of a message, or of another member, where that is known. */
  readonly longest?: number
  readonly model: string
  readonly stream: boolean
  /** `x-mem-strict`: 400 instead of a dropped field. */
  readonly strict: boolean
  readonly organizationId: number
  /** `v1/messages/count_tokens`: the surface is `messages`, and nothing is to be answered. */
  readonly countOnly?: boolean
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
  /** Upstream speaks the client's dialect: the client's headers of it travel along (gateway.md 3.3). */
  readonly isRelay: boolean
  readonly body: Buffer
  /**
   * Embeddings of a provider that takes them in parts: what to send instead of `body`, and how to put the answers
   * together. Present only where one call is not enough.
   */
  readonly split?: Split
  /** For `x-mem-dropped`. */
  readonly dropped: readonly string[]
  /** A whole 200 answer. @throws UpstreamFault for one that is none */
  answer(body: Buffer): JsonAnswer
  /** For a 200 that streams. */
  stream(): AnswerStream
  /** What a refusal of the provider means, and how the client is told. */
  fault(status: number, headers: Readonly<Record<string, string>>, body: Buffer): UpstreamFault
}

/**
 * Calls that only together answer a request. Each goes out like any other call of the candidate, with a body of its own
 * and `surface` `embeddings`; four at once at most. The first that fails is the attempt's failure (`Exchange.fault`), and the
 * others are aborted: all or nothing. Contract: gateway.md 5.6.
 */
export interface Split {
  readonly bodies: readonly Buffer[]
  /** @param answers whole 200 answers, in the order of `bodies`. @throws UpstreamFault for one that is none */
  join(answers: readonly Buffer[]): JsonAnswer
  /** What the answers that came before a failure reported, for their tokens count all the same. Contract: gateway.md 7.2. */
  facts(answers: readonly Buffer[]): AnswerFacts
}

export interface JsonAnswer {
  /** In the client's dialect; the same bytes on a relay. */
  readonly body: Buffer
  readonly facts: AnswerFacts
}

/** What an answer told of itself, so far. */
export interface AnswerFacts {
  readonly usage: Usage | undefined
  /** In the words of OpenAI, whatever the dialect: `stop length tool_calls content_filter`. */
  readonly finishReason: string | undefined
  readonly responseModel: string | undefined
  /** The provider's id of the answer. */
  readonly responseId: string | undefined
  /** UTF-8 bytes of text, reasoning and arguments said: for `estimateUsage` where no usage was reported. */
  readonly textBytes: number
}

export interface AnswerStream {
  /** What these bytes of the provider mean. @throws UpstreamFault for an error event or a malformed one */
  read(chunk: Buffer): StreamStep
  /** The provider ended. @throws UpstreamFault when its stop event never came */
  end(): StreamStep
  /** The last bytes of a stream that breaks off after commit, as the client's dialect tells an error. */
  fail(error: GatewayError, requestId: string): Buffer
  /** Keeps a silent stream open; empty where one would stand inside an event. */
  readonly heartbeat: Buffer
  readonly facts: AnswerFacts
}

export interface StreamStep {
  /** For the client; may be none. */
  readonly bytes: readonly Buffer[]
  /** `waiting` before anything but pings, `started` after a valid start event, `content` from the first content on, `finished` when only usage may follow, `stopped` after the last event. */
  readonly state: 'waiting' | 'started' | 'content' | 'finished' | 'stopped'
}

interface Told {
  status?: number | undefined
  retryAfterMs?: number | undefined
  message?: string | undefined
  facts?: AnswerFacts | undefined
}

/** An attempt that failed, as the provider told it: its message is the provider's, redacted. */
export class UpstreamFault extends Error {
  override readonly name = 'UpstreamFault'
  readonly class: FailureClass
  /** What the client is told, if it is to be told: redacted. */
  readonly error: GatewayError
  /** How long the provider asks to be left alone. */
  readonly retryAfterMs: number | undefined
  readonly status: number | undefined
  /** Of a whole answer that is taken for none and yet reported its usage. */
  readonly facts: AnswerFacts | undefined
  /** Of a stream: what the client gets, once committed, before it is told of the fault. */
  before: readonly Buffer[] = []

  constructor(failure: FailureClass, error: GatewayError, { status, retryAfterMs, message, facts }: Told = {}) {
    super(message ?? error.message)
    this.class = failure
    this.error = error
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.facts = facts
  }
}

/** Makes the exchange between a request and a candidate. @throws GatewayError 400 for what cannot be said there */
export type MakeExchange = (request: InferenceRequest, candidate: Candidate) => Exchange
