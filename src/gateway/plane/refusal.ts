import type { GatewayError } from '../errors.ts'
import type { AnswerSink } from './sink.ts'

/** When to come again where nothing says it. */
const RETRY_AFTER_MS = 1000
/** Whole seconds that a timer of a client can wait: what is longer ends at once. */
const LONGEST_MS = 2_147_483_000

/** Whose envelope errors are told in, and under which id. */
export interface Family {
  readonly isAnthropic: boolean
  readonly requestId: string
}

/** The body of a refusal in its family's envelope. Contract: gateway.md 3.4. */
export const refusalBody = (error: GatewayError, { isAnthropic, requestId }: Family): Buffer =>
  Buffer.from(JSON.stringify(isAnthropic ? error.toAnthropic(requestId) : error.toOpenAi()))

/** What a refusal's head tells beyond what the rest of the answer's does, names and values in turn. Contract: gateway.md 3.3. */
export function refusalHeaders(error: GatewayError, body: Buffer): string[] {
  const headers = ['content-type', 'application/json', 'content-length', `${body.length}`]
  if (error.status === 401) headers.push('www-authenticate', 'Bearer')
  if (error.code === 'budget_exceeded') headers.push('x-should-retry', 'false')
  if (error.status === 429 || error.status === 503) {
    const ms = Math.min(LONGEST_MS, Math.max(1, Math.ceil(error.retryAfterMs ?? RETRY_AFTER_MS)))
    headers.push('retry-after', `${Math.ceil(ms / 1000)}`, 'retry-after-ms', `${ms}`)
  }
  return headers
}

/** Refuses whole. @param more headers, names and values in turn */
export function refuse(sink: AnswerSink, error: GatewayError, family: Family, more: readonly string[] = []): void {
  const body = refusalBody(error, family)
  sink.head(error.status, [...refusalHeaders(error, body), ...more])
  sink.end(body)
}
