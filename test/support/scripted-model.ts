import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Envelope } from '../../src/kernel/model/envelope.ts'

/** One answer of the model. Members of an outcome that are left out are filled in: invocationId, summary, dispositions. */
export type ScriptedAnswer =
  | { outcome: Record<string, unknown>; usage?: ScriptedUsage | null; headers?: Record<string, string> }
  /** Another status, with a body. */
  | { status: number; headers?: Record<string, string>; body?: string }
  /** A 200 whose arguments are this text. */
  | { malformed: string }
  /** A 200 without the call. */
  | { text: string }
  /** No answer until it is let go, or the client has gone. */
  | { after: Promise<unknown>; outcome: Record<string, unknown> }

interface ScriptedUsage {
  prompt_tokens: number
  completion_tokens: number
  prompt_tokens_details?: { cached_tokens: number }
}

export interface ModelRequest {
  envelope: Envelope
  headers: IncomingMessage['headers']
  maxTokens: number
  tool: { name: string; strict: boolean }
}

type Script = (envelope: Envelope, request: number) => ScriptedAnswer

export interface ScriptedModel {
  /** To be given `/chat/completions`. */
  baseUrl: string
  /** All requests so far, in the order they came. */
  requests: ModelRequest[]
  /** What runs with this goal are answered, one after the other; the last again and again. `*` is for all other goals. */
  script(goal: string, answers: readonly ScriptedAnswer[] | Script): void
  /** Requests for runs with this goal. */
  asked(goal: string): ModelRequest[]
  /** Resolves with the next request for this goal that is answered `after` something. */
  held(goal: string): Promise<void>
  close(): Promise<void>
}

const USAGE = { prompt_tokens: 100, completion_tokens: 10 }

/** A model behind a real HTTP server that speaks chat completions and answers from a script. */
export async function startScriptedModel(): Promise<ScriptedModel> {
  const scripts = new Map<string, Script>()
  const requests: ModelRequest[] = []
  const waiting: { goal: string; resolve(): void }[] = []

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = JSON.parse(Buffer.concat(chunks).toString())
    const envelope: Envelope = JSON.parse(body.messages[1].content)
    const { goal } = envelope
    const before = requests.filter((other) => other.envelope.goal === goal).length
    const { name, strict } = body.tools[0].function
    requests.push({ envelope, headers: request.headers, maxTokens: body.max_tokens, tool: { name, strict } })
    const script = scripts.get(goal) ?? scripts.get('*')
    const scripted = script?.(envelope, before) ?? { status: 500, body: `nothing is scripted for ${goal}` }
    if ('after' in scripted) {
      for (const { resolve } of waiting.filter((one) => one.goal === goal)) resolve()
      await Promise.race([scripted.after, once(response, 'close')])
    }
    if (response.destroyed) return
    if ('status' in scripted) {
      response.writeHead(scripted.status, scripted.headers).end(scripted.body ?? '')
      return
    }
    const headers = { 'content-type': 'application/json', ...('headers' in scripted && scripted.headers) }
    response.writeHead(200, headers).end(JSON.stringify(completion(scripted, envelope)))
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    script: (goal, answers) =>
      void scripts.set(
        goal,
        typeof answers === 'function'
          ? answers
          : (_, request) => answers[Math.min(request, answers.length - 1)] ?? { status: 500 },
      ),
    asked: (goal) => requests.filter(({ envelope }) => envelope.goal === goal),
    held: (goal) => new Promise((resolve) => waiting.push({ goal, resolve })),
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

type Answered = Exclude<ScriptedAnswer, { status: number }>

function completion(answer: Answered, envelope: Envelope): object {
  const usage = 'usage' in answer ? (answer.usage ?? undefined) : USAGE
  const message =
    'text' in answer
      ? { role: 'assistant', content: answer.text }
      : { role: 'assistant', content: null, tool_calls: [callOf(answer, envelope)] }
  return { id: 'c1', object: 'chat.completion', model: 'scripted-1', choices: [{ index: 0, message }], usage }
}

const callOf = (answer: Exclude<Answered, { text: string }>, envelope: Envelope): object => ({
  id: 'call_1',
  type: 'function',
  function: {
    name: 'submit_agent_turn',
    arguments: 'malformed' in answer ? answer.malformed : JSON.stringify(filled(answer.outcome, envelope)),
  },
})

const filled = (outcome: Record<string, unknown>, { invocationId, skills }: Envelope): object => ({
  invocationId,
  summary: 'A step',
  skillDispositions: skills.map(({ skillRef }) => ({ skillRef, disposition: 'applied', summary: 'Used' })),
  ...outcome,
})
