import { AnthropicStreamWriter } from '../chat/anthropic/write-answer.ts'
import { AnswerError, type ChatEvent, type Said, type Usage } from '../chat/events.ts'
import { OpenAiStreamWriter, type AnswerHead } from '../chat/openai/write-answer.ts'
import type { GatewayError } from '../errors.ts'
import type { Surface } from '../model.ts'
import { EventStreamError } from '../relay/aws-event-stream.ts'
import { EventTooLargeError } from '../relay/sse.ts'
import { UpstreamFault, type AnswerStream, type StreamStep } from './exchange.ts'
import { Facts } from './facts.ts'
import { familyOf, type Family } from './family.ts'
import { brokenFault, emptyFault, eventFault, malformedFault, type FaultView } from './faults.ts'
import type { SignatureKeeper } from './signature-keeper.ts'
import type { UpstreamReader } from './upstream-reader.ts'

export interface TranslatedStreamParts {
  readonly surface: Surface
  /** An OpenAI client asked for the usage chunk. */
  readonly includeUsage: boolean
  readonly headOf: (start: Extract<ChatEvent, { kind: 'start' }>) => AnswerHead
  /** Of all, and of the prompt alone. */
  readonly estimate: (facts: Facts) => Usage
  readonly inputEstimate: () => Usage
  readonly reader: UpstreamReader
  readonly keeper: SignatureKeeper
  readonly view: FaultView
}

interface Writer {
  write(event: Said): string
  end(estimate: Usage): string
}

/** A stream of another dialect, said event by event in the client's. Contract: gateway.md 5.4, 5.5, 6. */
export class TranslatedStream implements AnswerStream {
  readonly facts = new Facts()
  readonly #parts: TranslatedStreamParts
  readonly #family: Family
  #writer: Writer | undefined
  #state: StreamStep['state'] = 'waiting'

  constructor(parts: TranslatedStreamParts) {
    this.#parts = parts
    this.#family = familyOf(parts.surface)
  }

  get heartbeat(): Buffer {
    return this.#family.heartbeat
  }

  read(chunk: Buffer): StreamStep {
    return this.#step((texts) => {
      const { reader } = this.#parts
      for (const event of reader.read(chunk)) this.#say(event, texts)
      if (reader.hasHeard && this.#state === 'waiting') this.#state = 'started'
      if (reader.isOver && this.#state !== 'stopped') this.#stop(texts)
    })
  }

  end(): StreamStep {
    return this.#step((texts) => {
      if (this.#state === 'stopped') return
      for (const event of this.#parts.reader.close()) this.#say(event, texts)
      this.#stop(texts)
    })
  }

  fail(error: GatewayError, requestId: string): Buffer {
    return this.#family.streamError(error, requestId)
  }

  #say(event: ChatEvent, texts: string[]): void {
    if (this.#state === 'stopped') return
    const { view, keeper } = this.#parts
    if (event.kind === 'error') throw eventFault(event.data, view, event.name, this.facts)
    this.facts.add(event)
    keeper.add(event)
    if (event.kind === 'stop' && event.reason === 'malformed') {
      throw malformedFault(this.facts)
    }
    if (event.kind === 'start') {
      if (this.#writer) return
      this.#writer = this.#writerOf(event)
    } else if (event.kind === 'stop') this.#state = 'finished'
    else if (event.kind !== 'usage') this.#state = 'content'
    texts.push(this.#started(texts).write(event))
  }

  /** A provider that answers without a beginning gets one. */
  #started(texts: string[]): Writer {
    if (this.#writer) return this.#writer
    this.#writer = this.#writerOf({ kind: 'start' })
    texts.push(this.#writer.write({ kind: 'start' }))
    return this.#writer
  }

  #writerOf(start: Extract<ChatEvent, { kind: 'start' }>): Writer {
    const head = this.#parts.headOf(start)
    return this.#family.dialect === 'anthropic'
      ? new AnthropicStreamWriter(head, this.#parts.inputEstimate())
      : new OpenAiStreamWriter(head, this.#parts.includeUsage)
  }

  #stop(texts: string[]): void {
    if (this.facts.finishReason === undefined && !this.#parts.reader.isOver) {
      throw brokenFault('upstream_truncated', 'the provider broke off its answer', this.facts)
    }
    if (this.#state !== 'content' && this.#state !== 'finished') throw emptyFault(this.facts)
    const { estimate } = this.#parts
    texts.push(this.#started(texts).end(this.facts.usage ?? estimate(this.facts)))
    this.#state = 'stopped'
  }

  #step(work: (texts: string[]) => void): StreamStep {
    const texts: string[] = []
    const bytes = (): Buffer[] => {
      const text = texts.join('')
      return text === '' ? [] : [Buffer.from(text)]
    }
    try {
      work(texts)
    } catch (error) {
      const fault = isBroken(error) ? brokenFault('upstream_invalid_response', error.message, this.facts) : error
      if (fault instanceof UpstreamFault) fault.before = bytes()
      throw fault
    }
    return { bytes: bytes(), state: this.#state }
  }
}

const isBroken = (error: unknown): error is Error =>
  error instanceof AnswerError || error instanceof EventTooLargeError || error instanceof EventStreamError
