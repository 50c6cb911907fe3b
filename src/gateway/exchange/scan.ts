import type { StreamStep } from './exchange.ts'
import type { Facts } from './facts.ts'

/** What a relay looks for in the events of a stream, and nothing else. Contract: gateway.md 6. */
export interface Scan {
  readonly facts: Facts
  readonly state: StreamStep['state']
  /** Whether these bytes are one whole event like the last one, which said nothing but text; its text is counted then. */
  repeats(chunk: Buffer): boolean
  /**
   * Looks at an event. What goes out in its place: undefined for its own bytes, empty for nothing.
   * @param raw its bytes as Latin-1
   * @throws UpstreamFault for an error
   */
  frame(raw: string): string | undefined
  /** What is still to be said behind the last event, as Latin-1; undefined when the stop event never came. */
  end(): string | undefined
}
