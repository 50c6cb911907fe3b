import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { EmbedderSettings } from '../../../src/memory/embedder/types.ts'
import { openServer } from '../../support/http-server.ts'

export interface Received {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: unknown
}

export type Answer =
  { status?: number; headers?: Record<string, string>; body: unknown } | ((out: ServerResponse) => void)

/** A provider for one test: keeps what it is asked and gives the answers in turn, the last one for ever. */
export async function provider(...answers: Answer[]): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = []
  async function respond(request: IncomingMessage, out: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request
    const body: unknown = JSON.parse(await text(request))
    received.push({ method, path: url, headers, body })
    const answer = answers[Math.min(received.length, answers.length) - 1] ?? { body: {} }
    if (typeof answer === 'function') return answer(out)
    out.writeHead(answer.status ?? 200, answer.headers)
    out.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
  }
  return { url: await openServer((request, out) => void respond(request, out)), received }
}

export const settings = (changes: Partial<EmbedderSettings> = {}): EmbedderSettings => ({
  model: 'hash:default',
  providers: {},
  timeoutMs: 5000,
  batchSize: 16,
  queryPrefix: '',
  documentPrefix: '',
  ...changes,
})

export const never = new AbortController().signal
