import { version } from '../../base/version.ts'
import type { Kind } from '../model.ts'
import { isHeaderValue } from '../outbound/request-head.ts'
import type { OpenCredential } from '../state/organization-state.ts'
import { UpstreamAuthError } from './upstream.ts'

/** Headers of the connection, and of whoever calls. */
const RESERVED =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|cookie|proxy-.*)$/
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Whether a kind carries its credential in this header. */
function isCredential(kind: Kind, { auth }: Readonly<Record<string, unknown>>, name: string): boolean {
  if (kind === 'anthropic') return name === 'x-api-key'
  if (kind === 'gemini') return name === 'x-goog-api-key'
  if (kind === 'azure-openai') return name === 'api-key'
  // AWS takes no header of its own that is not signed.
  if (kind === 'bedrock') return name === 'authorization' || name.startsWith('x-amz-')
  if (kind !== 'openai-compatible') return name === 'authorization'
  return auth !== 'none' && name === (auth === 'x-api-key' ? 'x-api-key' : 'authorization')
}

/** What is wrong with a custom header of a credential; undefined when nothing is. Contract: gateway.md 10.3. */
export function checkCustomHeader(
  { kind, config }: Pick<OpenCredential, 'kind' | 'config'>,
  name: string,
  value: string,
): string | undefined {
  if (!TOKEN.test(name)) return 'is no header name'
  if (RESERVED.test(name.toLowerCase())) return 'is a header of the connection'
  if (isCredential(kind, config, name.toLowerCase())) return 'is the header of the credential itself'
  return isHeaderValue(value) ? undefined : 'has a value that no header can carry'
}

/**
 * The headers of every call of a credential, names and values in turn: its custom ones, over them ours and the kind's own.
 * @throws UpstreamAuthError when a key holds what no header can carry
 */
export function readyHeaders({ customHeaders }: OpenCredential, own: Readonly<Record<string, string>>): string[] {
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(customHeaders)) headers.set(name.toLowerCase(), value)
  const ours = {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'user-agent': `mem-gateway/${version}`,
  }
  for (const [name, value] of Object.entries({ ...ours, ...own })) headers.set(name, value)
  for (const [name, value] of headers) {
    if (!isHeaderValue(value))
      throw new UpstreamAuthError(`the value of the header ${name} holds what no header can carry`)
  }
  return [...headers].flat()
}

/** With what the client sent of these headers: lists grow, others are replaced. The same array when it sent none. */
export function withForwarded(
  ready: string[],
  forwarded: Readonly<Record<string, string>>,
  names: readonly string[],
): string[] {
  let headers = ready
  for (const name of names) {
    const value = forwarded[name]
    if (value === undefined) continue
    if (headers === ready) headers = [...ready]
    const at = headers.findIndex((each, i) => i % 2 === 0 && each === name)
    if (at < 0) headers.push(name, value)
    else headers[at + 1] = name.endsWith('-beta') ? `${headers[at + 1]},${value}` : value
  }
  return headers
}
