import type { GatewayError } from '../../../src/gateway/errors.ts'
import type { AnswerFacts, InferenceRequest } from '../../../src/gateway/exchange/exchange.ts'
import type { RunResult } from '../../../src/gateway/plane/parts.ts'
import type { AnswerSink } from '../../../src/gateway/plane/sink.ts'

/** A client that reads everything. */
export class Reader implements AnswerSink {
  status = 0
  headers: Record<string, string> = {}
  text = ''
  isEnded = false
  isGone = false
  #tell: (() => void) | undefined

  head(status: number, headers: string[]): void {
    if (this.status !== 0) throw new Error('there is one head only')
    this.status = status
    for (let i = 0; i < headers.length; i += 2) this.headers[headers[i] ?? ''] = headers[i + 1] ?? ''
  }

  write(chunk: Buffer): boolean {
    this.text += chunk.toString()
    return true
  }

  drained(): Promise<void> {
    return Promise.resolve()
  }

  end(chunk?: Buffer): void {
    if (chunk) this.write(chunk)
    if (this.isEnded) throw new Error('there is one end only')
    this.isEnded = true
  }

  onGone(tell: () => void): void {
    this.#tell = tell
  }

  leave(): void {
    this.isGone = true
    this.#tell?.()
  }
}

/** An upstream call that the test answers by hand. */
export class Upstream {
  readonly sink: AnswerSink
  isAborted = false
  readonly #request: InferenceRequest
  #end: (result: RunResult) => void = () => undefined
  readonly result: Promise<RunResult>

  constructor(sink: AnswerSink, request: InferenceRequest) {
    this.sink = sink
    this.#request = request
    this.result = new Promise((resolve) => (this.#end = resolve))
    const abort = (): void => {
      this.isAborted = true
      this.#end({ ok: false, facts: undefined })
    }
    if (sink.isGone) abort()
    else sink.onGone(abort)
  }

  /** @param finishes how more choices end, each saying the same, which the facts do not tell */
  answer(
    text: string,
    { finishReason = 'stop', finishes = [] }: { finishReason?: string; finishes?: readonly (string | null)[] } = {},
  ): void {
    const { stream, surface } = this.#request
    const head = { id: 'x', created: 1, model: 'm' }
    if (stream) {
      const chunk = (delta: object, finish: string | null, index = 0): Buffer =>
        Buffer.from(
          `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index, delta, finish_reason: finish }] })}\n\n`,
        )
      this.sink.head(200, ['content-type', 'text/event-stream; charset=utf-8', 'x-mem-credential', 'secret name'])
      this.sink.write(chunk({ role: 'assistant', content: text }, null))
      for (const [i, finish] of finishes.entries()) this.sink.write(chunk({ content: text }, finish, i + 1))
      this.sink.write(chunk({}, finishReason))
      this.sink.end(Buffer.from('data: [DONE]\n\n'))
    } else {
      const body = JSON.stringify({
        ...head,
        object: 'chat.completion',
        choices: [finishReason, ...finishes].map((finish, index) => ({
          index,
          message: { role: 'assistant', content: text },
          finish_reason: finish,
        })),
      })
      this.sink.head(200, ['content-type', 'application/json', 'x-mem-dropped', 'seed'])
      this.sink.end(Buffer.from(body))
    }
    this.finish(surface === 'embeddings' ? undefined : finishReason, text.length)
  }

  /** Ends the call well, behind what went into the sink. */
  finish(finishReason: string | undefined, textBytes: number): void {
    const facts: AnswerFacts = {
      usage: { input: 3, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, output: 4, reasoning: 0 },
      finishReason,
      responseModel: 'm',
      responseId: undefined,
      textBytes,
    }
    this.#end({ ok: true, facts })
  }

  /** @param shared whether it was the provider's doing */
  fail(shared?: GatewayError): void {
    this.sink.head(502, ['content-type', 'application/json'])
    this.sink.end(Buffer.from('{"error":{}}'))
    this.#end({ ok: false, facts: undefined, ...(shared && { shared }) })
  }
}
