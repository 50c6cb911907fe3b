import { statSync } from 'node:fs'
import { errorText } from '../base/errors.ts'
import type { Config } from '../config/load.ts'
import { CliError, EXIT } from './exit.ts'

/** For verbs that open the stores themselves: a mistyped path must not become an empty database. */
export function requireDatabase({ stores: { metadata } }: Config): void {
  if (metadata.driver !== 'sqlite') return
  try {
    if (statSync(metadata.dsn, { throwIfNoEntry: false })) return
  } catch (error) {
    const hint = 'Run it as the user of the server.'
    throw new CliError(EXIT.failure, `${metadata.dsn} cannot be read: ${errorText(error)}`, hint)
  }
  throw new CliError(EXIT.failure, `there is no database at ${metadata.dsn}`, 'Check --data-dir and --config.')
}
