import * as z from 'zod'
import { jsonOf } from '../../base/json.ts'
import { MemoryNetworkError } from '../../client/errors.ts'
import { EventReader } from '../../gateway/relay/sse.ts'
import { checkEndpoint, traced } from '../connect.ts'
import type { Context } from '../command.ts'
import { CliError, EXIT, exitOfStatus, usageError } from '../exit.ts'
import { foreignAnswer } from '../output.ts'
import { LOG_IN_OR_KEY } from '../platform/rest.ts'

/** How a model's answer ended. */
export interface Ended {
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | undefined
  readonly finishReason: string | undefined
}

const usage = z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullish()
const failure = z.object({ error: z.object({ message: z.string(), code: z.string().nullish() }) })
const said = z.object({ content: z.string().nullish() }).nullish()
const answer = z.object({
  choices: z.array(z.object({ message: said, delta: said, finish_reason: z.string().nullish() })).default([]),
  usage,
})

/** Opens a completion. @throws CliError with what the gateway says */
export async function openCompletion(
  context: Context,
  {
    token,
    credential,
    body,
    signal,
  }: { token: string; credential: string | undefined; body: object; signal: AbortSignal },
): Promise<Response> {
  const { endpoint, verbose } = context.settings
  checkEndpoint(endpoint)
  const call = verbose ? traced(context) : fetch
  const response = await call(`${endpoint.replace(/\/+$/, '')}/rest/v1/llm-gateway/v1/chat/completions`, {
    method: 'POST',
    headers: headersOf(token, credential),
    body: JSON.stringify(body),
    redirect: 'manual',
    signal,
  }).catch((error: unknown) => {
    throw signal.aborted ? error : new MemoryNetworkError(`cannot reach ${endpoint}`, error)
  })
  if (!response.ok) throw refusal(response.status, jsonOf(await response.text()), response.headers.get('retry-after'))
  if (isCompletion(response, 'stream' in body)) return response
  await response.body?.cancel()
  throw foreignAnswer(context.settings)
}

/** Other servers answer 200 too, with a page for people. */
function isCompletion({ headers }: Response, isStream: boolean): boolean {
  const type = headers.get('content-type') ?? ''
  return /^text\/event-stream\b/i.test(type) || (!isStream && /^application\/json\b/i.test(type))
}

/** @throws CliError (usage) that does not say the token */
function headersOf(token: string, credential: string | undefined): Headers {
  try {
    return new Headers({
      'Content-Type': 'application/json',
      'User-Agent': 'mem-cli',
      Authorization: `Bearer ${token}`,
      ...(credential !== undefined && { 'x-mem-credential': credential }),
    })
  } catch {
    throw usageError('the key, or the name of the credential, has characters that no HTTP header can carry')
  }
}

/** A whole answer: what it says, how it ended, and all of it. */
export async function readAnswer(response: Response): Promise<Ended & { text: string; whole: object }> {
  const whole = jsonOf(await response.text().catch(brokenOff))
  const { data } = answer.safeParse(whole)
  if (!data || typeof whole !== 'object' || whole === null)
    throw new CliError(EXIT.server, 'the answer is no completion')
  const [choice] = data.choices
  return { text: choice?.message?.content ?? '', ...endedOf(data.usage, choice?.finish_reason), whole }
}

/** Hands on what a stream says, piece by piece. @throws CliError for an error in it, or when it breaks off */
export async function readStream(response: Response, write: (text: string) => void): Promise<Ended> {
  const reader = new EventReader()
  let counted: z.infer<typeof usage>
  let finish: string | null | undefined
  let isWhole = false
  for await (const chunk of bytesOf(response)) {
    for (const { data } of reader.read(Buffer.from(chunk))) {
      if (data === '[DONE]') {
        isWhole = true
        continue
      }
      const value = jsonOf(data)
      if (failure.safeParse(value).success) throw refusal(EXIT_STATUS, value)
      const { data: event } = answer.safeParse(value)
      const [choice] = event?.choices ?? []
      if (choice?.delta?.content) write(choice.delta.content)
      finish = choice?.finish_reason ?? finish
      counted = event?.usage ?? counted
    }
  }
  if (!isWhole) brokenOff()
  return endedOf(counted, finish)
}

async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  try {
    if (body) yield* body
  } catch {
    brokenOff()
  }
}

function brokenOff(): never {
  throw new CliError(EXIT.server, 'the answer broke off')
}

const endedOf = (counted: z.infer<typeof usage>, finish: string | null | undefined): Ended => ({
  usage: counted ?? undefined,
  finishReason: finish ?? undefined,
})

/** Of an error inside a stream. */
const EXIT_STATUS = 502

/** @param wait in seconds, until the same call may do */
function refusal(status: number, value: unknown, wait: string | null = null): CliError {
  const { data } = failure.safeParse(value)
  if (!data) return new CliError(exitOfStatus(status), `HTTP status ${status}`, 'Does this server have the gateway?')
  const { message, code } = data.error
  const later = wait === null ? undefined : `Try again in ${wait} s.`
  return new CliError(exitOfStatus(status), code ? `${message} (${code})` : message, HINTS[code ?? ''] ?? later)
}

const HINTS: Readonly<Record<string, string>> = {
  invalid_api_key: LOG_IN_OR_KEY,
  model_not_found: '`mem gateway models` lists the names; `mem gateway models --explain <name>` tells why.',
  no_available_credential: '`mem gateway credentials list` shows what is wrong with them.',
  upstream_credentials_rejected:
    '`mem gateway credentials list` shows which, and why; a new key: mem gateway credentials update <name> --api-key-file <file>',
  model_blocked: '`mem gateway settings` shows what is blocked.',
  model_not_allowed: '`mem gateway keys update <key> --allow <model>` allows more.',
  price_unknown:
    'Whoever runs the server can give the price, in gateway.prices of its mem.yaml; a budget with --budget-unknown-price ' +
    'allow (--user-budget-unknown-price) lets such calls through.',
  budget_exceeded: '`mem gateway cost` shows the budgets.',
  not_initialized:
    "On the server's machine, with its --config and --data-dir: mem platform init --organization <name> --email <you@example.org>",
}
