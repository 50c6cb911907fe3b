import type { Context } from '../command.ts'
import { readSecretFile } from '../input.ts'
import { SESSION_FLAG, tokenOf, type SessionInput } from '../platform/rest.ts'

/** The flags of verbs that act with a session or a virtual key. Contract: gateway.md 12. */
export const ACCESS_FLAGS = {
  'key-file': { value: 'file', help: 'File with a virtual key (MEM_GATEWAY_KEY; else a session)' },
  ...SESSION_FLAG,
} as const

interface AccessInput extends SessionInput {
  'key-file': string | undefined
}

/** What calls bring. */
export interface Access {
  token: string
  /** Management routes know sessions alone. */
  isSession: boolean
}

/** What is named on the command line wins over the environment, and a key there over a session. @throws CliError without any */
export async function accessOf(context: Context, input: AccessInput): Promise<Access> {
  const { 'key-file': file, 'session-token': session } = input
  if (file !== undefined) return { token: (await readSecretFile(context.io, file)).trim(), isSession: false }
  const key = session === undefined ? (context.io.env['MEM_GATEWAY_KEY'] ?? '') : ''
  return key === '' ? { token: tokenOf(context, input), isSession: true } : { token: key, isSession: false }
}
