import { randomUUID } from 'node:crypto'
import type { BudgetLimits, Owner, Party, Scope, WriteOptions } from '../../client/kernel/kernel-types.ts'
import { KernelClient } from '../../client/kernel-client.ts'
import type { Context } from '../command.ts'
import { traced } from '../connect.ts'
import { usageError } from '../exit.ts'
import { parsePairs } from '../input.ts'

/** The flags of every verb that asks the kernel. Contract: kernel-2.md 17. */
export const KERNEL_FLAGS = {
  token: { value: 'token', help: 'Token of the kernel (KERNEL_API_TOKEN, else the API key)' },
  scope: { value: 'kind:id', default: 'local:default', help: 'Scope to work in' },
  header: { value: 'name=value', repeat: true, help: 'Further header of each request' },
} as const

export const LIST_FLAGS = {
  limit: { value: 'n', integer: true, help: 'Rows at most (50)' },
  cursor: { value: 'cursor', help: 'Go on where an earlier answer ended' },
} as const

export const BUDGET_FLAG = {
  value: 'dimension=n',
  repeat: true,
  help: 'What it may use at most: maxTurns=20, maxTotalTokens=100000',
} as const

interface KernelInput {
  token: string | undefined
  scope: string
  header: readonly string[]
}

/** Headers that are the protocol's own. */
const PROTOCOL = new Set(['authorization', 'content-type', 'content-length', 'host', 'idempotency-key', 'accept'])

/** A client of the kernel: at --endpoint, KERNEL_ENDPOINT or MEM_ENDPOINT. */
export function connectKernel(context: Context, input: KernelInput): KernelClient {
  const variable = (name: string): string | undefined =>
    context.io.env[name] === '' ? undefined : context.io.env[name]
  const { endpoint, isEndpointGiven, apiKey, timeoutMs, verbose } = context.settings
  const requestHeaders = parsePairs('header', input.header) ?? {}
  const refused = Object.keys(requestHeaders).find((name) => PROTOCOL.has(name.toLowerCase()))
  if (refused !== undefined) throw usageError(`--header ${refused} is not yours to set`, 'The protocol sets it itself.')
  const token = input.token ?? variable('KERNEL_API_TOKEN') ?? apiKey
  const kernelEndpoint = isEndpointGiven ? undefined : variable('KERNEL_ENDPOINT')
  return new KernelClient(kernelEndpoint ?? endpoint, {
    requestHeaders: { 'User-Agent': 'mem-cli', ...requestHeaders },
    timeoutMs,
    scope: parseScope(input.scope),
    ...(token !== undefined && { token }),
    ...(verbose && { fetch: traced(context) }),
  })
}

/** So that a write whose answer was lost may be sent again. */
export const once = (key: string = randomUUID()): WriteOptions & { idempotencyKey: string } => ({ idempotencyKey: key })

function split(flag: string, text: string, form: string): [kind: string, id: string] {
  const colon = text.indexOf(':')
  if (colon < 1 || colon === text.length - 1) throw usageError(`--${flag} '${text}' is not of the form ${form}`)
  return [text.slice(0, colon), text.slice(colon + 1)]
}

function parseScope(text: string): Scope {
  const [kind, id] = split('scope', text, 'kind:id')
  return { kind, id }
}

/** `type:id` */
export function parseParty(flag: string, text: string): Party {
  const [type, id] = split(flag, text, 'type:id')
  return { type, id }
}

/** `agent:<id>` or `team:<id>`, of the flag `--owner`. @throws CliError, exit code 1 */
export function parseOwner(text: string): Owner {
  const { type, id } = parseParty('owner', text)
  if (type !== 'agent' && type !== 'team') throw usageError(`--owner '${text}' must be agent:<id> or team:<id>`)
  return { type, id }
}

/** `dimension=n`, of the flag; the server knows the dimensions. */
export function parseLimits(flag: string, pairs: readonly string[]): BudgetLimits | undefined {
  const given = parsePairs(flag, pairs)
  if (!given) return undefined
  return Object.fromEntries(
    Object.entries(given).map(([dimension, amount]) => {
      if (!/^\d+$/.test(amount)) throw usageError(`--${flag} ${dimension}: '${amount}' is no whole number`)
      return [dimension, Number(amount)]
    }),
  )
}

/** Who acts at a command line; a claim, as the token names nobody. */
export const LOCAL_USER: Party = { type: 'user', id: 'local' }

export const partyText = ({ type, id }: Party): string => `${type}:${id}`
