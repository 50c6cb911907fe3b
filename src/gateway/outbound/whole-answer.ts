import { asError } from '../../base/errors.ts'
import { recordOf } from './answer-head.ts'
import type { AnswerHandler, Dispatcher, Line, OutboundRequest } from './dispatcher.ts'

export interface WholeAnswer {
  readonly status: number
  /** By names in small letters; of one that comes twice, the last. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

interface WholeOptions {
  readonly body?: Buffer | undefined
  readonly signal: AbortSignal
  /** Of the answer's body. */
  readonly maxBytes: number
}

/**
 * The answer to a small request, read whole.
 * @throws NetworkError, AddressRefusedError, an error of the system, or what the signal was aborted for
 */
export async function wholeAnswer(
  dispatcher: Dispatcher,
  request: OutboundRequest,
  { body = Buffer.alloc(0), signal, maxBytes }: WholeOptions,
): Promise<WholeAnswer> {
  signal.throwIfAborted()
  let reader: WholeReader | undefined
  const stop = (): void => reader?.stop(asError(signal.reason))
  signal.addEventListener('abort', stop)
  try {
    return await new Promise((resolve, reject) => {
      reader = new WholeReader({ resolve, reject, maxBytes })
      dispatcher.dispatch(request, body, reader)
    })
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

interface ReaderParts {
  readonly resolve: (answer: WholeAnswer) => void
  readonly reject: (error: Error) => void
  readonly maxBytes: number
}

class WholeReader implements AnswerHandler {
  readonly #parts: ReaderParts
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #fields: readonly string[] = []
  #line: Line | undefined
  #isStopped = false

  constructor(parts: ReaderParts) {
    this.#parts = parts
  }

  stop(reason: Error): void {
    this.#isStopped = true
    this.#line?.abort(this)
    this.#parts.reject(reason)
  }

  onConnect(line: Line): void {
    this.#line = line
    if (this.#isStopped) line.abort(this)
  }

  onHeaders(status: number, fields: readonly string[]): void {
    this.#status = status
    this.#fields = fields
  }

  onData(chunk: Buffer): boolean {
    this.#bytes += chunk.length
    const { maxBytes } = this.#parts
    if (this.#bytes > maxBytes) this.stop(new Error(`the answer has more than ${maxBytes} bytes`))
    else this.#chunks.push(chunk)
    return true
  }

  onComplete(): void {
    this.#parts.resolve({ status: this.#status, headers: recordOf(this.#fields), body: Buffer.concat(this.#chunks) })
  }

  onError(error: Error): void {
    this.#parts.reject(error)
  }
}
