import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text as textOf } from 'node:stream/consumers'

/** Answers, refuses with 503, or never answers. */
export type Behaviour = 'works' | 'fails' | 'hangs'

/** A stand-in for an OpenAI-compatible provider, on a port of its own. */
export interface EmbeddingProvider {
  /** For OPENAI_BASE_URL. */
  url: string
  /** How it meets the next requests, by what they ask for. */
  behave: (texts: readonly string[], model: string) => Behaviour
  /** The texts of every request so far. */
  readonly requests: { model: string; texts: string[] }[]
  /** Resolves when the next request comes, or when the client gives one up that hangs. */
  next(event: 'asked' | 'abandoned'): Promise<unknown>
  /** Works from now on, for what hangs too. */
  recover(): void
  stop(): Promise<void>
}

/** Starts a provider whose model `<anything>-<n>` gives bags of words in n values. */
export async function startEmbeddingProvider(): Promise<EmbeddingProvider> {
  const hanging: (() => void)[] = []
  const events = new EventEmitter()
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { model, input }: { model: string; input: string[] } = JSON.parse(await textOf(request))
    provider.requests.push({ model, texts: input })
    const behaviour = provider.behave(input, model)
    response.once('close', () => response.writableEnded || events.emit('abandoned'))
    events.emit('asked')
    if (behaviour === 'hangs') await new Promise<void>((resolve) => hanging.push(resolve))
    response.statusCode = behaviour === 'fails' ? 503 : 200
    const data = input.map((words, index) => ({ index, embedding: bagOfWords(words, Number(model.split('-').at(-1))) }))
    response.end(behaviour === 'fails' ? 'overloaded' : JSON.stringify({ data }))
  }
  const server = createServer((request, response) => void respond(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const provider: EmbeddingProvider = {
    url: `http://127.0.0.1:${address.port}`,
    behave: () => 'works',
    requests: [],
    next: (event) => once(events, event),
    recover: () => {
      provider.behave = () => 'works'
      for (const resume of hanging.splice(0)) resume()
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return provider
}

/** Texts with more words in common are nearer. */
function bagOfWords(text: string, dimension: number): number[] {
  const values = Array.from({ length: dimension }, () => 0)
  for (const word of text.toLowerCase().match(/\w+/g) ?? []) {
    let hash = 7
    for (const letter of word) hash = (hash * 31 + letter.charCodeAt(0)) % 1_000_003
    const slot = hash % dimension
    values[slot] = (values[slot] ?? 0) + 1
  }
  return values
}
