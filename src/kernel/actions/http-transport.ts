import type { Response } from 'undici'
import { isLoopback } from '../../base/network.ts'
import type { Dispatch, DispatchOutcome, TransportExecutor } from '../ports.ts'

/** Actions of services: one POST, and what its answer means. Contract: kernel-2.md 1 */

const MAX_BYTES = 4 * 1024 * 1024

/** `connect`: what TLS needs to know besides what Node knows. */
export const createHttpTransport = (connect: { ca?: string } = {}): TransportExecutor => ({
  async execute(dispatch) {
    const prepared = prepareRequest(dispatch)
    if (typeof prepared === 'string') return refused(prepared)
    const { Agent, fetch } = await import('./http-client.ts')
    // A connection of its own: one that was kept and broke would leave open whether the request arrived.
    const dispatcher = new Agent({ connect, pipelining: 0 })
    let hasLeft = false
    dispatcher.on('connect', () => (hasLeft = true))
    try {
      const { signal } = dispatch
      const response = await fetch(prepared.url, {
        ...prepared.init,
        method: 'POST',
        redirect: 'manual',
        signal,
        dispatcher,
      })
      return await readAnswer(response)
    } catch (error) {
      const why = causeOf(error)
      return hasLeft
        ? { kind: 'unknown', error: `the connection broke before the answer: ${why}` }
        : { kind: 'failed', error: `not sent: ${why}`, phase: 'dispatch', retryable: true }
    } finally {
      await dispatcher.destroy()
    }
  },
})

const refused = (error: string, retryable = false): DispatchOutcome => ({
  kind: 'failed',
  error,
  phase: 'dispatch',
  retryable,
})

interface Prepared {
  url: URL
  init: { headers: Record<string, string>; body: string }
}

/** The request, or why there is none. */
function prepareRequest(dispatch: Dispatch): Prepared | string {
  const { transport, idempotencyKey, credentials } = dispatch
  const { endpoint = '' } = transport
  if (!URL.canParse(endpoint)) return 'the action has no endpoint'
  const url = new URL(endpoint)
  const isAllowed = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
  if (!isAllowed) return `${url.origin} is refused: an endpoint must be https, or http on this machine`
  const { invocationId, scope, skillId, skillVersion, action, attempt } = dispatch
  const content = { invocationId, scope, skillId, skillVersion, action, arguments: dispatch.arguments, attempt }
  const body = JSON.stringify(content)
  if (Buffer.byteLength(body) > MAX_BYTES) return `the request is above ${MAX_BYTES} bytes`
  const headers = new Headers({ 'content-type': 'application/json', 'idempotency-key': idempotencyKey })
  for (const [name, { kind, value }] of Object.entries(credentials)) {
    const header = kind === 'bearer' ? 'authorization' : kind.startsWith('header:') ? kind.slice('header:'.length) : ''
    if (header === '') return `credential ${name} is of kind ${kind}, which http does not know`
    try {
      headers.set(header, kind === 'bearer' ? `Bearer ${value}` : value)
    } catch {
      return `credential ${name} does not fit a header`
    }
  }
  return { url, init: { headers: Object.fromEntries(headers), body } }
}

async function readAnswer(response: Response): Promise<DispatchOutcome> {
  const { status } = response
  if (status >= 300 && status < 400) {
    await response.body?.cancel()
    return refused(`the service answered ${status}: redirects are refused`)
  }
  const text = await readText(response)
  if (response.ok) return readOutput(text)
  // Not cut here: of a secret that was cut in two nothing would be recognized.
  const error = `the service answered ${status}: ${text ?? ''}`
  if (status === 429 || status === 503) return refused(error, true)
  return status >= 500 ? { kind: 'unknown', error } : refused(error)
}

function readOutput(text: string | undefined): DispatchOutcome {
  const invalid = (error: string): DispatchOutcome => ({
    kind: 'failed',
    error,
    phase: 'validate_output',
    retryable: false,
  })
  if (text === undefined) return invalid(`the answer is above ${MAX_BYTES} bytes`)
  try {
    const output: unknown = JSON.parse(text)
    const isObject = output !== null && typeof output === 'object' && !Array.isArray(output)
    return isObject ? { kind: 'succeeded', output } : invalid('the answer is not a JSON object')
  } catch {
    return invalid('the answer is not JSON')
  }
}

/** Undefined when there is more than may come. */
async function readText({ body }: Response): Promise<string | undefined> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of body ?? []) {
    size += part.byteLength
    if (size > MAX_BYTES) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}
