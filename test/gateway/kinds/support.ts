import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { createUpstreams, type UpstreamParts } from '../../../src/gateway/kinds/index.ts'
import { createNetwork, type Network, type NetworkParts } from '../../../src/gateway/kinds/network.ts'
import type { Upstream, UpstreamCall } from '../../../src/gateway/kinds/upstream.ts'
import type { Kind } from '../../../src/gateway/model.ts'
import type { OutboundRequest } from '../../../src/gateway/outbound/dispatcher.ts'
import type { OpenCredential } from '../../../src/gateway/state/organization-state.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { openCredential } from '../open-credential.ts'

/** What management fills in where a user says nothing. */
const CONFIG: Partial<Record<Kind, Record<string, unknown>>> = {
  anthropic: { anthropic_version: '2026-10-21', default_max_tokens: 4096 },
  gemini: { api_version: 'v1beta' },
  'azure-openai': { api_version: '2024-10-21' },
  vertex: { anthropic_version: 'vertex-2023-10-16' },
  'openai-compatible': { auth: 'bearer', stream_usage: true, responses: false, drop: [] },
}

type Fields = Partial<Omit<OpenCredential, 'kind'>>

export const credential = (kind: Kind, fields: Fields = {}): OpenCredential =>
  openCredential(kind, {
    organizationId: 7,
    name: kind,
    secrets: { api_key: 'key-of-the-test' },
    ...fields,
    config: { ...CONFIG[kind], ...fields.config },
  })

export const call = (fields: Partial<UpstreamCall> = {}): UpstreamCall => ({
  surface: 'chat',
  model: 'm',
  stream: false,
  body: Buffer.from('{}'),
  forwarded: {},
  ...fields,
})

export const network = (parts: Partial<NetworkParts> = {}): Network =>
  createNetwork({ allowedHosts: ['127.0.0.1'], ca: undefined, connectMs: 2000, ...parts })

export const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }

export function upstreams(parts: Partial<UpstreamParts> = {}): (credential: OpenCredential) => Upstream {
  return createUpstreams({
    clock: adjustableClock(),
    random: () => 0.5,
    log: quiet,
    network: network(),
    runtimeRoles: [],
    environment: {},
    ...parts,
  })
}

export const headersOf = ({ headers }: OutboundRequest): Record<string, string> => {
  const found: Record<string, string> = {}
  for (let i = 0; i < headers.length; i += 2) found[headers[i] ?? ''] = headers[i + 1] ?? ''
  return found
}

export interface Received {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
}

export interface Listening {
  url: string
  port: number
  received: Received[]
  close(): Promise<void>
}

/** Starts a server on the loopback address. */
export async function listening(server: Server): Promise<{ url: string; port: number; close(): Promise<void> }> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const close = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${port}`, port, close }
}

/** A server that answers as told and keeps what it was sent. */
export async function answering(
  answer: (received: Received, response: ServerResponse) => void | Promise<void>,
): Promise<Listening> {
  const received: Received[] = []
  const listener: RequestListener = (request, response) => {
    const respond = async (): Promise<void> => {
      const { method = '', url = '', headers } = request
      const one = { method, url, headers, body: await text(request) }
      received.push(one)
      await answer(one, response)
    }
    respond().catch((error: unknown) => response.writeHead(500).end(String(error)))
  }
  return { ...(await listening(createServer(listener))), received }
}
