import { EmbedderError } from './types.ts'

export interface JsonRequest {
  url: string
  headers: Record<string, string>
  body: unknown
}

/**
 * Posts JSON and gives the parsed answer. `provider` begins every message; `secret` is in none.
 * @throws EmbedderError: retryable for 408, 429, 5xx, time-outs and network faults.
 * @throws the signal's reason when it is aborted.
 */
export async function postJson(
  provider: string,
  request: JsonRequest,
  secret: string | undefined,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<unknown> {
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(request.url, {
      method: 'POST',
      // A redirect would carry the key to another host.
      redirect: 'manual',
      headers: { 'content-type': 'application/json', ...request.headers },
      body: JSON.stringify(request.body),
      signal: AbortSignal.any([signal, timeout]),
    })
    if (response.ok) return await jsonOf(response, provider)
    const excerpt = redact(await beginOf(response), secret).slice(0, 200)
    throw new EmbedderError(`${provider} answered ${response.status}: ${excerpt}`, isPassing(response.status))
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof EmbedderError) throw error
    if (timeout.aborted) throw new EmbedderError(`${provider} gave no answer within ${timeoutMs} ms`, true)
    throw new EmbedderError(`${provider} cannot be reached: ${redact(reasonOf(error), secret)}`, true)
  }
}

const isPassing = (status: number): boolean => status === 408 || status === 429 || status >= 500

async function jsonOf(response: Response, provider: string): Promise<unknown> {
  const text = await response.text()
  try {
    return JSON.parse(text)
  } catch {
    throw new EmbedderError(`${provider} answered with something that is not JSON`, false)
  }
}

/** The first few thousand characters of a body, one line. */
async function beginOf(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > 4000) break
  }
  return text.replaceAll(/\s+/g, ' ').trim()
}

/** Providers repeat the key, whole or in part, in what they say about it. */
const KEY_LIKE = /\b(?:sk|pa)-[\w*.-]{4,}|\bAIza[\w*-]+/g

const redact = (text: string, secret: string | undefined): string =>
  (secret ? text.replaceAll(secret, '***') : text).replaceAll(KEY_LIKE, '***')

/** The system's word for a network fault; `fetch` itself only says that it failed. */
function reasonOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return 'request failed'
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message.slice(0, 200)
}
