import { existsSync } from 'node:fs'
import type { Config } from '../config/load.ts'
import { CliError, EXIT } from './exit.ts'

/** For verbs that open the stores themselves: a mistyped path must not become an empty database. */
export function requireDatabase({ stores: { metadata } }: Config): void {
  if (metadata.driver === 'sqlite' && !existsSync(metadata.dsn)) {
    throw new CliError(EXIT.failure, `there is no database at ${metadata.dsn}`, 'Check --data-dir and --config.')
  }
}
