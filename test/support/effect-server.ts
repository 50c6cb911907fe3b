import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

/** A request that has come in whole. */
export interface Effect {
  headers: IncomingHttpHeaders
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  body: any
}

/** What becomes of a request; a status answers with the body, which is `{ok: true}` unless given. */
export type Reaction =
  | { status: number; body?: unknown; headers?: Record<string, string> }
  /** The connection breaks, before or after the request was read. */
  | { drop: 'before' | 'after' }
  /** Answers only when told to, with 200 unless it says so. */
  | { until: Promise<unknown>; status?: number }

export interface EffectServer {
  url: string
  /** All that were read, in order. */
  effects: readonly Effect[]
  /** For the next requests, one each; those after get 200. */
  react(...reactions: Reaction[]): void
  /** Resolves when so many requests were read in all. */
  received(amount: number): Promise<void>
  close(): Promise<void>
}

/** A service of its own on this machine, that remembers what it was asked and fails as it is told to. */
export async function startEffectServer(): Promise<EffectServer> {
  const effects: Effect[] = []
  const reactions: Reaction[] = []
  const waiting: { amount: number; resolve: () => void }[] = []
  const react = async (reaction: Reaction, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    effects.push({ headers: request.headers, body: JSON.parse(await text(request)) })
    for (const { amount, resolve } of waiting) if (effects.length >= amount) resolve()
    if ('drop' in reaction) return void request.socket.destroy()
    if ('until' in reaction) await reaction.until
    answer(response, { status: 200, ...reaction })
  }
  const server = createServer((request, response) => {
    const reaction = reactions.shift() ?? { status: 200 }
    if ('drop' in reaction && reaction.drop === 'before') return void request.socket.destroy()
    void react(reaction, request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/act`,
    effects,
    react: (...more) => void reactions.push(...more),
    received: (amount) =>
      effects.length >= amount ? Promise.resolve() : new Promise((resolve) => waiting.push({ amount, resolve })),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answer(
  response: ServerResponse,
  { status, body = { ok: true }, headers = {} }: Extract<Reaction, { status: number }>,
): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}
