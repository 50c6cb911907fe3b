import { Agent, fetch } from 'undici'
import { connectionError } from '../outbound/guard.ts'
import { connectionOf, type Connection, type KubernetesOptions } from './connection.ts'

const CONNECT_TIMEOUT_MS = 10_000

export interface ApiResponse {
  readonly status: number
  readonly headers: Pick<Headers, 'get'>
  /** @throws NodeError network_error when the connection breaks */
  readonly body: AsyncIterable<Uint8Array>
}

/** Requests to one API server over connections that are kept. */
export interface Transport {
  readonly namespace: string
  /** @throws NodeError network_error, tls_failed */
  send(
    path: string,
    init: { method: string; headers: Record<string, string>; body?: string; signal: AbortSignal },
  ): Promise<ApiResponse>
}

/** @throws NodeError config_invalid */
export async function openTransport(options: KubernetesOptions, timeoutMs: number): Promise<Transport> {
  const connection = await connectionOf(options)
  const base = connection.server.replace(/\/+$/, '')
  const { host } = new URL(base)
  const dispatcher = agent(connection, timeoutMs)
  return {
    namespace: connection.namespace,
    send: async (path, { signal, headers, ...init }) => {
      const token = await connection.token()
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
      try {
        const all = { accept: 'application/json', 'user-agent': 'mem', ...headers, ...authorization }
        const answer = await fetch(`${base}${path}`, { ...init, headers: all, signal, dispatcher, redirect: 'manual' })
        return { status: answer.status, headers: answer.headers, body: readBody(answer.body, host, signal) }
      } catch (error) {
        signal.throwIfAborted()
        throw connectionError(error, host)
      }
    },
  }
}

const agent = ({ ca, cert, key, serverName }: Connection, timeoutMs: number): Agent =>
  new Agent({
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: {
      timeout: CONNECT_TIMEOUT_MS,
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { servername: serverName }),
    },
  })

async function* readBody(
  body: AsyncIterable<Uint8Array> | null,
  host: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch (error) {
    signal.throwIfAborted()
    throw connectionError(error, host)
  }
}
