import type { GatewayError } from '../errors.ts'
import { EventTooLargeError } from '../relay/sse.ts'
import { FrameRelay } from '../relay/frame-relay.ts'
import { UpstreamFault, type AnswerFacts, type AnswerStream, type StreamStep } from './exchange.ts'
import type { Family } from './family.ts'
import { brokenFault } from './faults.ts'
import type { Scan } from './scan.ts'

const NOTHING = Buffer.alloc(0)
const EVENT_END = Buffer.from('\n\n')

/** A stream in the client's own dialect: its bytes go through, a scan looks at each event on the way. Contract: gateway.md 6. */
export class RelayStream implements AnswerStream {
  readonly #scan: Scan
  readonly #family: Family
  readonly #frames: FrameRelay
  #isOver = false

  constructor(scan: Scan, family: Family) {
    this.#scan = scan
    this.#family = family
    this.#frames = new FrameRelay(scan)
  }

  get facts(): AnswerFacts {
    return this.#scan.facts
  }

  get heartbeat(): Buffer {
    return this.#frames.isInside ? NOTHING : this.#family.heartbeat
  }

  read(chunk: Buffer): StreamStep {
    const bytes: Buffer[] = []
    try {
      this.#frames.read(chunk, bytes)
    } catch (error) {
      throw this.#faultOf(error, bytes)
    }
    return { bytes, state: this.#scan.state }
  }

  end(): StreamStep {
    const bytes: Buffer[] = []
    const { isInside } = this.#frames
    try {
      this.#frames.end(bytes)
      this.#close(bytes)
    } catch (error) {
      // Half an event is worth nothing: it stays here, or is ended where it has gone out in part.
      throw this.#faultOf(error, isInside ? [EVENT_END] : [])
    }
    return { bytes, state: this.#scan.state }
  }

  fail(error: GatewayError, requestId: string): Buffer {
    const told = this.#family.streamError(error, requestId)
    return this.#frames.isInside ? Buffer.concat([EVENT_END, told]) : told
  }

  #close(bytes: Buffer[]): void {
    if (this.#isOver) return
    this.#isOver = true
    const last = this.#scan.end()
    if (last === undefined) throw brokenFault('upstream_truncated', 'the provider broke off its answer', this.facts)
    if (last !== '') bytes.push(Buffer.from(last, 'latin1'))
  }

  #faultOf(error: unknown, bytes: readonly Buffer[]): unknown {
    const isLarge = error instanceof EventTooLargeError
    const fault = isLarge ? brokenFault('upstream_invalid_response', error.message, this.facts) : error
    if (fault instanceof UpstreamFault) fault.before = bytes
    return fault
  }
}
