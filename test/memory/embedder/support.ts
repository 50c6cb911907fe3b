import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import type { EmbedderSettings } from '../../../src/memory/embedder/types.ts'

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
  const server = createServer((request, out) => void respond(request, out)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return { url: `http://127.0.0.1:${address.port}`, received }
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
