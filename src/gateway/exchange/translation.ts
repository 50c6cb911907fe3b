import { sha256 } from '../../base/hash.ts'
import { readAnthropicRequest } from '../chat/anthropic/read-request.ts'
import { writeAnthropicAnswer } from '../chat/anthropic/write-answer.ts'
import { writeAnthropicRequest } from '../chat/anthropic/write-request.ts'
import { writeConverseRequest } from '../chat/converse/write-request.ts'
import { AnswerError, NO_USAGE, type ChatEvent, type Said } from '../chat/events.ts'
import { UnsayableError, type ChatRequest, type Drop, type Family } from '../chat/form.ts'
import { writeGeminiRequest } from '../chat/gemini/write-request.ts'
import type { Json } from '../chat/json.ts'
import { readOpenAiRequest } from '../chat/openai/read-request.ts'
import { writeOpenAiAnswer, type AnswerHead } from '../chat/openai/write-answer.ts'
import { writeOpenAiRequest } from '../chat/openai/write-request.ts'
import { writeJson } from '../chat/raw-json.ts'
import type { Target } from '../chat/target.ts'
import { withoutSilent } from '../chat/turns.ts'
import type { Dialect } from '../model.ts'
import { readMembers } from '../relay/body.ts'
import type { Candidate } from '../routing/candidate.ts'
import { editBody } from './edit-body.ts'
import { estimateInputTokens, estimateUsage } from './estimate.ts'
import type { AnswerStream, Exchange, InferenceRequest, JsonAnswer, UpstreamFault } from './exchange.ts'
import { Facts } from './facts.ts'
import { brokenFault, emptyFault, eventFault, malformedFault, refusalFault, type FaultView } from './faults.ts'
import { allowedCap } from './output-cap.ts'
import { SignatureKeeper } from './signature-keeper.ts'
import type { Signatures } from './signatures.ts'
import { targetOf } from './target.ts'
import { TranslatedStream } from './translated-stream.ts'
import { readerOf } from './upstream-reader.ts'

type Write = (request: ChatRequest, target: Target, drop: Drop) => Json

const WRITERS: Readonly<Record<Dialect, Write>> = {
  openai: writeOpenAiRequest,
  anthropic: writeAnthropicRequest,
  gemini: writeGeminiRequest,
  converse: writeConverseRequest,
}

/** Whose thoughts each takes. */
const FAMILY: Readonly<Record<Dialect, Family>> = {
  openai: 'openai',
  anthropic: 'claude',
  gemini: 'gemini',
  converse: 'claude',
}

/** What translations share. */
export interface TranslationParts {
  readonly signatures: Signatures
  readonly view: FaultView
}

/** A chat with a provider of another dialect, by way of the inner form. Contract: gateway.md 5. */
export class Translation implements Exchange {
  readonly isRelay = false
  readonly body: Buffer
  readonly dropped: readonly string[]
  readonly #request: InferenceRequest
  readonly #form: ChatRequest
  readonly #candidate: Candidate
  readonly #parts: TranslationParts

  /** @throws UnsayableError for what cannot be said in the candidate's dialect */
  constructor(request: InferenceRequest, candidate: Candidate, parts: TranslationParts) {
    const dropped = new Set<string>()
    const drop = (field: string): void => void dropped.add(field)
    const read = request.surface === 'messages' ? readAnthropicRequest : readOpenAiRequest
    const form = answerable(
      capped(
        parts.signatures.restore(read(request.json(), drop, request.body), request.organizationId),
        allowedCap(request, candidate),
      ),
      FAMILY[candidate.dialect],
    )
    const written = WRITERS[candidate.dialect](form, targetOf(candidate), drop)
    const bytes = Buffer.from(writeJson({ ...addressed(form, candidate), ...written }))
    const edited = editBody(bytes, readMembers(bytes, new Set()), candidate, { addUsage: false })
    this.body = edited.body
    this.dropped = [...dropped, ...edited.dropped.filter((name) => name !== 'stream_options')]
    this.#request = request
    this.#form = form
    this.#candidate = candidate
    this.#parts = parts
  }

  answer(body: Buffer): JsonAnswer {
    const { view } = this.#parts
    const facts = new Facts()
    const said: Said[] = []
    const keeper = new SignatureKeeper(this.#parts.signatures, this.#request.organizationId)
    for (const event of this.#whole(body)) {
      if (event.kind === 'error') throw eventFault(event.data, view, event.name, facts)
      facts.add(event)
      keeper.add(event)
      said.push(event)
    }
    if (facts.finishReason === 'malformed') throw malformedFault(facts)
    if (!said.some(({ kind }) => kind !== 'start' && kind !== 'usage')) {
      throw emptyFault(facts)
    }
    const head = this.#head(said.find((event) => event.kind === 'start'))
    if (!facts.usage) said.push({ kind: 'usage', usage: estimateUsage(this.#request, facts) })
    const write = this.#request.surface === 'messages' ? writeAnthropicAnswer : writeOpenAiAnswer
    const written = answering(() => write(head, said), facts)
    return { body: Buffer.from(writeJson(written)), facts }
  }

  stream(): AnswerStream {
    return new TranslatedStream({
      surface: this.#request.surface,
      includeUsage: this.#form.includeUsage,
      headOf: (start) => this.#head(start),
      estimate: (facts) => estimateUsage(this.#request, facts),
      inputEstimate: () => ({ ...NO_USAGE, input: estimateInputTokens(this.#request) }),
      reader: readerOf(this.#candidate.dialect, this.#callId()),
      keeper: new SignatureKeeper(this.#parts.signatures, this.#request.organizationId),
      view: this.#parts.view,
    })
  }

  fault(status: number, headers: Readonly<Record<string, string>>, body: Buffer): UpstreamFault {
    return refusalFault(status, headers, body, this.#parts.view)
  }

  #whole(body: Buffer): ChatEvent[] {
    return answering(() => readerOf(this.#candidate.dialect, this.#callId()).whole(body.toString('utf8')))
  }

  #head(start: Extract<ChatEvent, { kind: 'start' }> | undefined): AnswerHead {
    const now = this.#parts.view.clock.now()
    const made = `${this.#request.surface === 'messages' ? 'msg' : 'chatcmpl'}_${digest(this.#request, String(now))}`
    return { id: start?.id ?? made, created: Math.floor(now / 1000), model: start?.model ?? this.#candidate.model }
  }

  /** The same for the same conversation, and others for the next turn of it. */
  #callId(): (index: number) => string {
    let conversation: string | undefined
    return (index) => `call_${(conversation ??= digest(this.#request, ''))}_${index}`
  }
}

/** @throws UpstreamFault for what is no answer */
function answering<T>(work: () => T, facts?: Facts): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof AnswerError) throw brokenFault('upstream_invalid_response', error.message, facts)
    throw error
  }
}

const digest = ({ body }: InferenceRequest, salt: string): string =>
  sha256(Buffer.concat([body, Buffer.from(salt)])).slice(0, 24)

/** The model and how it answers, where the body says so. */
function addressed({ stream }: ChatRequest, { dialect, model, upstream: { edits } }: Candidate): Json {
  if (dialect !== 'openai' && dialect !== 'anthropic') return {}
  return {
    ...(edits.modelInBody && { model }),
    ...(stream && { stream }),
    ...(stream && dialect === 'openai' && edits.streamUsage && { stream_options: { include_usage: true } }),
  }
}

/** Providers of other dialects take no system text alone, and empty text is left out. @throws UnsayableError */
function answerable(form: ChatRequest, family: Family): ChatRequest {
  const turns = withoutSilent(form.turns, family)
  if (turns.length > 0) return turns === form.turns ? form : { ...form, turns }
  throw new UnsayableError('invalid_value', 'messages', 'messages need one that says something, beside the system text')
}

function capped(form: ChatRequest, cap: number | undefined): ChatRequest {
  return cap === undefined || (form.maxTokens ?? Infinity) <= cap ? form : { ...form, maxTokens: cap }
}
