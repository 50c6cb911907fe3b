import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

export interface Recorded {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

export interface Reply {
  status?: number
  headers?: Record<string, string | string[]>
  body?: string | Buffer | object
}

/** A server that keeps what it is sent and answers by `reply`; gone with the test. */
export async function recorder(
  reply: (request: Recorded, count: number) => Reply = () => ({}),
): Promise<{ url: string; requests: Recorded[] }> {
  const requests: Recorded[] = []
  const server = createServer((request, response) => {
    const respond = async (): Promise<void> => {
      const bytes = await buffer(request)
      const { method = '', url = '', headers } = request
      const recorded = { method, url, headers, body: bytes.toString() }
      requests.push(recorded)
      const { status = 200, headers: sent = {}, body = '' } = reply(recorded, requests.length)
      const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
      response.writeHead(status, { ...(isJson && { 'content-type': 'application/json' }), ...sent })
      response.end(isJson ? JSON.stringify(body) : body)
    }
    void respond()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, requests }
}

/** Attributes as HCL; texts are literal. */
export function attributes(values: Record<string, unknown>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} = ${literal(value)}`)
    .join('\n')
}

const literal = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/\$\{|%\{/g, (open) => `${open.slice(0, 1)}${open}`)
