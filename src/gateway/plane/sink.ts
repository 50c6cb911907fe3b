/** Where an answer goes: a client's connection, or whoever collects it for the cache. */
export interface AnswerSink {
  /** Names and values in turn. */
  head(status: number, headers: string[]): void
  /** False: wait for `drained` before more. */
  write(chunk: Buffer): boolean
  /** Resolves also when the client goes. */
  drained(): Promise<void>
  end(chunk?: Buffer): void
  /** The client has gone before the answer was whole. */
  readonly isGone: boolean
  /** Tells when the client goes, in the same turn; replaces who was told before. Cheaper than a signal for every call. */
  onGone(tell: () => void): void
}

/** Of a stream of events: names and values in turn. */
export const STREAM_HEADERS: readonly string[] = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-cache, no-transform',
  'x-accel-buffering',
  'no',
]
