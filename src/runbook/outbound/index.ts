import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import { Guard, type GuardOptions, type Resolve } from './guard.ts'
import type { HttpRequest, HttpResponse } from './request.ts'

/** The way out of a run; every connection is checked. Contract: runbook.md 5.1. */
export interface Outbound {
  request(url: string, request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>
  connect(host: string, port: number, signal: AbortSignal): Promise<Socket>
  /** Ends the connections of requests: one that was given up in its TLS handshake would live for ten seconds more. */
  close(): void
}

/** How an embedding program replaces the network. Contract: runbook.md 11. */
export interface NetworkOptions {
  readonly fetch?: typeof globalThis.fetch
  /** The addresses of a name; the system's resolver when absent. */
  readonly resolve?: Resolve
}

/** The HTTP client is loaded with the first request: it takes longer to load than a small run. */
export function createOutbound(options: GuardOptions & NetworkOptions): Outbound {
  const guard = new Guard(options)
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // one for each connection
  let client: Promise<Outbound['request']> | undefined
  const load = async (): Promise<Outbound['request']> => {
    const { foreignTransport, guardedTransport, sendRequest } = await import('./request.ts')
    const transport = options.fetch ? foreignTransport(guard, options.fetch) : guardedTransport(guard, closing.signal)
    return (url, request, signal) => sendRequest(transport, url, request, signal)
  }
  return {
    request: async (url, request, signal) => (await (client ??= load()))(url, request, signal),
    connect: (host, port, signal) => guard.connect(host, port, signal),
    close: () => closing.abort(),
  }
}
