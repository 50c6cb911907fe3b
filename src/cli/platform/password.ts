import { canAsk, secret } from '../ask.ts'
import type { Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { readSecretFile } from '../input.ts'

export const PASSWORD_FLAG = {
  'password-file': { value: 'file', help: 'File with the password; `-` is standard input (MEM_PASSWORD, else asked)' },
} as const

/** A password from the file, the environment or a person, who types a new one twice. @throws CliError without any */
export async function readPassword(io: Io, file: string | undefined, { isNew }: { isNew: boolean }): Promise<string> {
  if (file !== undefined) return readSecretFile(io, file)
  const given = io.env['MEM_PASSWORD']
  if (given) return given
  if (!canAsk(io)) {
    throw usageError(
      'a password is required',
      'Pass --password-file <file>, `-` for standard input, or set MEM_PASSWORD.',
    )
  }
  const typed = await secret(io, 'Password')
  // Nobody has an empty one, and to try it would count as a failed login.
  if (typed === '') throw usageError('a password is required', 'Type it, or pass --password-file <file>.')
  if (isNew && typed !== (await secret(io, 'Once more'))) throw new CliError(EXIT.failure, 'the two are not the same')
  return typed
}
