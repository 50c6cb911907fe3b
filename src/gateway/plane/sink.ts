/** Where an answer goes: a client's connection, or whoever collects it for the cache. */
export interface AnswerSink {
  /** Names and values in turn. */
  head(status: number, headers: string[]): void
  /** False: wait for `drained` before more. */
  write(chunk: Buffer): boolean
  drained(): Promise<void>
  end(chunk?: Buffer): void
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal
}
