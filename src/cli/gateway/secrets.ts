import { CONFIGS, SECRETS } from '../../gateway/requests/config.ts'
import type { Kind } from '../../gateway/model.ts'
import type { Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { readSecretFile } from '../input.ts'
import type { Settings } from '../settings.ts'

/** Secrets come from files, standard input and the environment: arguments are for everybody on the machine to read. */

/** The secrets that `config` of a kind may hold; bedrock's bearer key may stand there too. Contract: gateway.md 2.1. */
export const configSecrets = (kind: Kind): string[] =>
  ['api_key', ...(SECRETS[kind] ?? [])].filter((name) => name in CONFIGS[kind].shape)

/** What follows `--api-key` would go to the server as the key of its memory. @throws CliError (usage) */
export function refuseKeyArgument({ isApiKeyGiven }: Settings): void {
  if (!isApiKeyGiven) return
  throw usageError(
    "--api-key is the server's own key, not the provider's, and arguments are no secret",
    "Give the provider's key with --api-key-file <file> or --api-key-env <variable>.",
  )
}

/** @throws CliError (usage) when the variable is not set */
export function readSecretVariable({ env }: Io, name: string): string {
  const value = env[name]
  if (value) return value
  throw usageError(`the variable ${name} is not set`, 'Set it in the environment of this command.')
}

/** The key of `--api-key-file` or `--api-key-env`; undefined without either. */
export async function readApiKey(
  io: Io,
  { 'api-key-file': file, 'api-key-env': variable }: ApiKeyInput,
): Promise<string | undefined> {
  if (file !== undefined && variable !== undefined) throw usageError('give one of --api-key-file and --api-key-env')
  if (file !== undefined) return readSecretFile(io, file)
  return variable === undefined ? undefined : readSecretVariable(io, variable)
}

interface ApiKeyInput {
  'api-key-file': string | undefined
  'api-key-env': string | undefined
}

export const API_KEY_FLAGS = {
  'api-key-file': { value: 'file', help: "File with the provider's key; `-` is standard input" },
  'api-key-env': { value: 'variable', help: 'Environment variable with it' },
} as const

/** A value that `@file` reads from a file. */
export const readValue = async (io: Io, text: string): Promise<string> =>
  text.startsWith('@') ? readSecretFile(io, text.slice(1)) : text
