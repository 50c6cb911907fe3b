import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { isQuestion, MODEL, sortOf, usageOf, type Sort } from './calls.ts'

/** Long enough for a client to leave meanwhile. */
const SLOW = { words: 200, ms: 5 }
const BREAKS_AFTER = 10
const LATE_MS = 250
export const WORD = 'word '
const LARGE = WORD.repeat(1600)

export interface LoadProvider {
  readonly port: number
  /** How many whole answers told what the call with this number used. */
  readonly told: ReadonlyMap<number, number>
  /** Numbers of the calls that came. */
  readonly came: ReadonlySet<number>
  /** When the connection of a call closed before its answer had gone out (epoch ms). */
  readonly leftAt: ReadonlyMap<number, number>
  /** How many calls it did not refuse, by the credential's name. */
  readonly answered: ReadonlyMap<string, number>
  /** Whose calls it refuses with 503. */
  down: string | undefined
  /** How long streams are that nobody leaves, and the milliseconds between their words. */
  pace: { words: number; ms: number }
  close(): Promise<void>
}

/** A provider of the OpenAI dialect on loopback that does to each call what its sort says, and counts what it tells. */
export async function startLoadProvider(port = 0): Promise<LoadProvider> {
  const sockets = new Set<Socket>()
  const told = new Map<number, number>()
  const came = new Set<number>()
  const answered = new Map<string, number>()
  const leftAt = new Map<number, number>()
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    void buffer(request)
      .then((body) => serve(request, response, body.toString('latin1')))
      .catch(() => response.destroy())
  })

  const serve = (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const name = /^Bearer (\w+)-/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const number = Number(/call (\d+)/.exec(body)?.[1] ?? 0)
    const sort: Sort = isQuestion(number) ? 'cached' : sortOf(number)
    response.once('close', () => {
      if (!response.writableFinished) leftAt.set(number, Date.now())
    })
    const isFirst = !came.has(number)
    came.add(number)
    if (provider.down === name || (sort === 'retried' && isFirst)) return fail(response, 503)
    if (sort === 'refused') return fail(response, 400)
    answered.set(name, (answered.get(name) ?? 0) + 1)
    const count = (): void => void told.set(number, (told.get(number) ?? 0) + 1)
    if (request.url?.endsWith('/embeddings') === true) return sendJson(response, embeddingOf(number), count)
    if (!body.includes('"stream":true')) {
      const answer = answerOf(number, sort === 'large' ? LARGE : WORD)
      if (sort !== 'hung up') return sendJson(response, answer, count)
      const timer = setTimeout(() => sendJson(response, answer, count), LATE_MS)
      response.once('close', () => clearTimeout(timer))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (sort === 'restarted' && isFirst) {
      response.end(frame({ error: { message: 'the engine fell over', type: 'server_error' } }))
    } else void stream(response, number, sort, sort === 'left' ? SLOW : provider.pace, count)
  }

  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await once(server.listen(port, '127.0.0.1', 1024), 'listening')
  const address = server.address()
  const provider: LoadProvider = {
    port: typeof address === 'object' && address ? address.port : port,
    told,
    came,
    answered,
    leftAt,
    down: undefined,
    pace: { words: 20, ms: 0 },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
  return provider
}

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

const usage = (number: number): object => {
  const { input, cached, output } = usageOf(number)
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  }
}

const answerOf = (number: number, content: string): object => ({
  id: `answer-${number}`,
  object: 'chat.completion',
  created: 1_700_000_000,
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: usage(number),
})

function embeddingOf(number: number): object {
  const { input } = usageOf(number)
  return {
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: Array.from({ length: 64 }, (_, i) => i / 64) }],
    model: MODEL,
    usage: { prompt_tokens: input, total_tokens: input },
  }
}

/** @param count is called when the answer has gone out whole */
function sendJson(response: ServerResponse, value: object, count: () => void): void {
  response.once('finish', count)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

function fail(response: ServerResponse, status: number): void {
  const error = { message: `the provider answers ${status}`, type: 'server_error', param: null, code: null }
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
}

async function stream(
  response: ServerResponse,
  number: number,
  sort: Sort,
  { words, ms }: LoadProvider['pace'],
  count: () => void,
): Promise<void> {
  const head = { id: `answer-${number}`, object: 'chat.completion.chunk', created: 1_700_000_000, model: MODEL }
  const say = (delta: object, finish_reason: string | null = null): void =>
    void response.write(frame({ ...head, choices: [{ index: 0, delta, finish_reason }] }))
  say({ role: 'assistant', content: '' })
  for (let i = 0; i < words; i++) {
    if (response.destroyed) return
    if (sort === 'broken' && i === BREAKS_AFTER) return void response.destroy()
    say({ content: WORD })
    await (ms > 0 ? sleep(ms) : turn())
  }
  response.once('finish', count)
  say({}, 'stop')
  response.end(`${frame({ ...head, choices: [], usage: usage(number) })}data: [DONE]\n\n`)
}
