import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

export interface RecordedRequest {
  method: string
  /** Path and query, as sent. */
  url: string
  headers: IncomingHttpHeaders
  /** Parsed; undefined when there was none. */
  body: unknown
}

export interface Reply {
  status?: number
  /** Sent as it is when a string, else as JSON. */
  body?: unknown
  headers?: Record<string, string>
}

export interface RecordingServer {
  endpoint: string
  requests: RecordedRequest[]
  /** Answers the next requests, in turn; without one: 200 `{}`. */
  replies: Reply[]
  close(): Promise<void>
}

/** A server that notes what it is asked and answers what it was told to. */
export async function startRecordingServer(): Promise<RecordingServer> {
  const requests: RecordedRequest[] = []
  const replies: Reply[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url = '', headers } = request
    const sent = await text(request)
    requests.push({ method, url, headers, body: sent === '' ? undefined : JSON.parse(sent) })
    const { status = 200, body = {}, headers: extra } = replies.shift() ?? {}
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_test', ...extra })
    response.end(status === 204 ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
  }
  const server = createServer((request, response) => void answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    requests,
    replies,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
