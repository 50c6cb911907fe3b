import { GatewayError } from '../errors.ts'
import {
  UpstreamFault,
  type AnswerFacts,
  type AnswerStream,
  type Exchange,
  type JsonAnswer,
  type StreamStep,
} from '../exchange/exchange.ts'
import { rejectedCredential } from '../exchange/faults.ts'
import { AddressRefusedError, UpstreamAuthError, type UpstreamCall } from '../kinds/upstream.ts'
import { NetworkError, type OutboundRequest } from '../outbound/dispatcher.ts'
import type { Candidate } from '../routing/candidate.ts'
import { Outflow } from './outflow.ts'
import type { PlaneLog } from './parts.ts'
import type { AnswerSink } from './sink.ts'
import type { Turn } from './turn.ts'
import type { Watch } from './watch.ts'
import { Wire, type WireEvents } from './wire.ts'

/** A refusal is read so far. */
const REFUSAL_BYTES = 1024 * 1024
/** A provider that has said the end may keep the connection so long. */
const AFTER_STOP_MS = 1000
/** And one that has said why it ends may take so long to report its usage, or that nothing follows. */
const AFTER_FINISH_MS = 5000
const AT_ONCE = 4
export interface AttemptLimits {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  /** Of the whole request. */
  readonly totalMs: number
  readonly commitAfterMs: number
  readonly maxBytes: number
}

export interface AttemptParts {
  readonly candidate: Candidate
  readonly exchange: Exchange
  readonly surface: UpstreamCall['surface']
  readonly stream: boolean
  readonly forwarded: UpstreamCall['forwarded']
  readonly limits: AttemptLimits
  readonly sink: AnswerSink
  /** Keeps what a stream says, up to a bound. */
  readonly keepsContent: boolean
  readonly owner: AttemptOwner
  readonly watch: Watch
  readonly turn: Turn
  readonly monotonic: () => number
  readonly log: PlaneLog
}

/** Who makes an attempt. */
export interface AttemptOwner {
  /** Writes the head of a stream. */
  commit(attempt: Attempt): void
  /** Told once; must not throw. */
  ended(attempt: Attempt, end: AttemptEnd): void
}

/** What an attempt came to. */
export interface AttemptEnd {
  readonly fault?: UpstreamFault
  readonly answer?: JsonAnswer
  /** Of a stream: what is still to be written. */
  readonly last?: readonly Buffer[]
}

/** One call of a candidate: sends it, reads its answer, and streams that into the sink once it has begun to say something. */
export class Attempt implements WireEvents {
  readonly candidate: Candidate
  readonly exchange: Exchange
  readonly startedAt: number
  endedAt: number | undefined
  /** When content first came, of a stream. */
  firstTokenAt: number | undefined
  status: number | undefined
  origin: string | undefined
  upstreamRequestId: string | undefined
  contentType: string | undefined
  #out: Outflow | undefined
  readonly #parts: AttemptParts
  readonly #bodies: readonly Buffer[]
  readonly #answers: Buffer[] = []
  #wires: Wire[] = []
  #begun = 0
  #answered = 0
  #bytes = 0
  #sentAt: number | undefined
  #lastByteAt: number
  #stream: AnswerStream | undefined
  #state: StreamStep['state'] = 'waiting'
  #startedStreamAt: number | undefined
  /** Parts that went out once more. */
  #resent: readonly number[] = []
  isOver = false

  constructor(parts: AttemptParts) {
    this.#parts = parts
    this.candidate = parts.candidate
    this.exchange = parts.exchange
    this.#bodies = parts.exchange.split?.bodies ?? [parts.exchange.body]
    this.startedAt = parts.monotonic()
    this.#lastByteAt = this.startedAt
  }

  /** Made for those that stream, and where the content is kept. */
  get out(): Outflow {
    return (this.#out ??= this.#open())
  }

  get isCommitted(): boolean {
    return this.#out?.isCommitted === true
  }

  /** Its owner is told of the end, perhaps at once. */
  run(): void {
    while (!this.isOver && this.#begun < Math.min(AT_ONCE, this.#bodies.length)) this.#send(this.#begun++)
  }

  /** Of a stream, or of the parts that have answered: however the attempt ends, what they reported counts. */
  get facts(): AnswerFacts | undefined {
    return this.#stream?.facts ?? this.exchange.split?.facts(this.#answers)
  }

  /** Something that the provider said as an answer has come. */
  get hasContent(): boolean {
    return this.#state === 'content' || this.#isSaid
  }

  /** All that was to be said has come. */
  get #isSaid(): boolean {
    return this.#state === 'finished' || this.#state === 'stopped'
  }

  /** The last bytes of a stream that breaks off. */
  failureBytes(error: GatewayError, requestId: string): Buffer[] {
    return this.#stream ? [this.#stream.fail(error, requestId)] : []
  }

  /** Ends it now, whatever it is at. */
  stop(fault: UpstreamFault): void {
    this.#finish({ fault })
  }

  sent(): void {
    this.#sentAt ??= this.#parts.watch.now
    this.#lastByteAt = this.#parts.watch.now
  }

  answered(wire: Wire): void {
    this.status = wire.status
    this.upstreamRequestId = wire.header(REQUEST_IDS)
    this.#lastByteAt = this.#parts.watch.now
    if (!isOk(wire)) return
    this.contentType = wire.header(CONTENT_TYPE)
    if (this.#parts.stream) this.#guarded(() => void (this.#stream = this.exchange.stream()))
  }

  data(wire: Wire, chunk: Buffer): boolean {
    this.#lastByteAt = this.#parts.watch.now
    this.#bytes += chunk.length
    if (this.#bytes > this.#parts.limits.maxBytes) {
      this.#fail('client', 'upstream_error', 'the answer is larger than gateway.max_response_bytes')
      return true
    }
    if (this.#stream && isOk(wire)) {
      this.#read(() => this.#stream?.read(chunk))
      return !this.out.isPaused
    }
    wire.chunks.push(chunk)
    if (!isOk(wire) && this.#bytes > REFUSAL_BYTES) this.#refused(wire)
    return true
  }

  ended(wire: Wire): void {
    this.#leave(wire)
    if (!isOk(wire)) return this.#refused(wire)
    if (this.#stream) return this.#endStream()
    this.#answers[wire.part] = wire.body
    this.#answered++
    if (this.#begun < this.#bodies.length) return this.#send(this.#begun++)
    if (this.#answered === this.#bodies.length) this.#guarded(() => this.#finish({ answer: this.#join() }))
  }

  failed(wire: Wire, error: Error): void {
    this.#leave(wire)
    if (this.#isSaid) return this.#endStream()
    if (wire.status !== 0 && !isOk(wire)) return this.#refused(wire)
    if (wire.status !== 0) {
      return this.#fail('transient', 'upstream_truncated', 'the provider broke its answer off')
    }
    this.#unreachable(error)
  }

  /** Time limits. Contract: gateway.md 4.6, 6. */
  tick(now: number): void {
    const { connectMs, firstByteMs, idleMs, commitAfterMs } = this.#parts.limits
    if (this.#sentAt === undefined) {
      if (now - this.startedAt <= connectMs) return
      return this.#fail('connect', 'upstream_timeout', 'no connection to the provider came about in time')
    }
    const silentMs = now - this.#lastByteAt
    if (this.status !== undefined && this.status >= 300) {
      if (silentMs > idleMs) for (const wire of this.#wires) this.#refused(wire)
      return
    }
    if (!this.#parts.stream) return
    if (this.#isSaid && silentMs > (this.#state === 'stopped' ? AFTER_STOP_MS : AFTER_FINISH_MS)) {
      return this.#endStream()
    }
    if (this.#startedStreamAt === undefined) {
      if (now - this.#sentAt > firstByteMs) {
        this.#fail('transient', 'upstream_timeout', 'the provider said nothing in time')
      }
      return
    }
    if (this.out.isPaused) return
    if (silentMs > idleMs) return this.#fail('transient', 'upstream_timeout', 'the provider fell silent')
    if (this.out.isCommitted) this.out.beat(now, this.#stream?.heartbeat)
    else if (now - this.#startedStreamAt > commitAfterMs) this.out.commit()
  }

  #open(): Outflow {
    const { sink, watch, keepsContent, owner } = this.#parts
    return new Outflow({ sink, watch, keepsContent, begin: () => owner.commit(this), resume: () => this.#resume() })
  }

  #send(part: number): void {
    const { candidate, surface, stream, forwarded } = this.#parts
    const body = this.#bodies[part] ?? this.exchange.body
    try {
      const request = candidate.upstream.request({ surface, model: candidate.model, stream, body, forwarded })
      if (!(request instanceof Promise)) return this.#dispatch(request, body, part)
      request.then(
        (made) => this.#dispatch(made, body, part),
        (error: unknown) => this.#unsent(error),
      )
    } catch (error) {
      this.#unsent(error)
    }
  }

  #dispatch(request: OutboundRequest, body: Buffer, part: number): void {
    if (this.isOver) return
    this.origin = request.origin
    const wire = new Wire(this, request, part)
    this.#wires.push(wire)
    const send = (): void => {
      try {
        wire.send(this.candidate.upstream, body)
      } catch (error) {
        this.#unsent(error)
      }
    }
    // Of streams that come together each waits for those before it, until its first word.
    if (this.#parts.stream) send()
    else this.#parts.turn.request(send)
  }

  #leave(wire: Wire): void {
    this.#wires = this.#wires.filter((each) => each !== wire)
  }

  #unsent(error: unknown): void {
    if (error instanceof UpstreamAuthError) {
      return this.#finish({ fault: new UpstreamFault('auth', rejectedCredential(), { message: error.message }) })
    }
    if (error instanceof GatewayError) return this.#finish({ fault: new UpstreamFault('client', error) })
    // Whom a token had to be asked of did not answer.
    if (error instanceof Error && isOfNetwork(error)) return this.#unreachable(error)
    this.#parts.log.error({ err: error, credential: this.candidate.upstream.credential.id }, 'a call could not be made')
    this.#fail('connect', 'upstream_error', 'the call to the provider could not be made')
  }

  #unreachable(error: Error): void {
    if (error instanceof AddressRefusedError) {
      const message = 'the provider cannot be reached (its address is one that the configuration does not allow)'
      return this.#fail('connect', 'upstream_error', message)
    }
    const code: unknown = Reflect.get(error, 'code')
    if (code === 'ETIMEDOUT') {
      return this.#fail('connect', 'upstream_timeout', 'no connection to the provider came about in time')
    }
    // The message may name internal addresses; the code says what happened.
    const reason = typeof code === 'string' ? code : error.name
    this.#fail('connect', 'upstream_error', `the provider cannot be reached (${reason})`)
  }

  /** The provider said no: once more, when it was only the clock. */
  #refused(wire: Wire): void {
    const { candidate, exchange } = this
    const headers = wire.headers()
    const { request, status, part, body } = wire
    if (!this.#resent.includes(part) && candidate.upstream.learnSkew?.(request, { status, headers, body })) {
      this.#resent = [...this.#resent, part]
      wire.cut()
      this.#leave(wire)
      return this.#send(part)
    }
    this.#guarded(() => this.#finish({ fault: exchange.fault(status, headers, body) }))
  }

  #join(): JsonAnswer {
    const { split } = this.exchange
    return split ? split.join(this.#answers) : this.exchange.answer(this.#answers[0] ?? EMPTY)
  }

  #read(next: () => StreamStep | undefined): void {
    this.#guarded(() => {
      const step = next()
      if (step) this.#take(step)
    })
  }

  #take({ bytes, state }: StreamStep): void {
    this.#state = state
    if (state !== 'waiting') this.#startedStreamAt ??= this.#parts.watch.now
    if (this.hasContent) this.firstTokenAt ??= this.#parts.monotonic()
    this.out.take(bytes, this.hasContent)
  }

  #resume(): void {
    this.#lastByteAt = this.#parts.watch.now
    for (const wire of this.#wires) wire.resume()
  }

  #endStream(): void {
    this.#guarded(() => {
      const last = this.#stream?.end() ?? { bytes: [], state: 'stopped' }
      this.#state = last.state
      if (!this.out.isCommitted) this.out.commit()
      this.#finish({ last: last.bytes })
    })
  }

  /** What the exchange throws is a fault of the provider; anything else is one of ours, and taken for an answer that cannot be read. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (error instanceof UpstreamFault) return this.#finish({ fault: error, last: error.before })
      this.#parts.log.error(
        { err: error, credential: this.candidate.upstream.credential.id },
        'an answer could not be read',
      )
      this.#fail('transient', 'upstream_invalid_response', 'the answer of the provider could not be read')
    }
  }

  #fail(failure: UpstreamFault['class'], code: GatewayError['code'], message: string): void {
    this.#finish({ fault: new UpstreamFault(failure, new GatewayError(code, message), { status: this.status }) })
  }

  #finish(end: AttemptEnd): void {
    if (this.isOver) return
    this.isOver = true
    this.endedAt = this.#parts.monotonic()
    if (this.#wires.length > 0) for (const wire of this.#wires.splice(0)) wire.cut()
    this.#parts.owner.ended(this, end)
  }
}

const EMPTY: Buffer = Buffer.alloc(0)

const isOfNetwork = (error: Error): boolean =>
  error instanceof AddressRefusedError || error instanceof NetworkError || 'syscall' in error

const CONTENT_TYPE = ['content-type']
const REQUEST_IDS = ['x-request-id', 'request-id', 'x-amzn-requestid', 'apim-request-id']

const isOk = ({ status }: Wire): boolean => status >= 200 && status < 300
