import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { makeDirectorySync } from '../../base/directory.ts'
import { errorText } from '../../base/errors.ts'
import type { Io } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'

const schema = z.object({ endpoint: z.string(), token: z.string(), expires_at: z.string(), email: z.string() })

/** What `mem login` keeps: a token, and the server it was made by. */
export type SavedSession = z.infer<typeof schema>

const pathOf = ({ env }: Io): string => join(env['HOME'] ?? homedir(), '.mem/session.json')

/** Undefined when nobody has logged in. */
export function readSession(io: Io): SavedSession | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(pathOf(io), 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new CliError(EXIT.failure, `${pathOf(io)} cannot be read: ${errorText(error)}`, '`mem login` writes it anew.')
  }
}

/** Only its owner may read it. @throws CliError when it cannot be kept */
export function writeSession(io: Io, session: SavedSession): void {
  const path = pathOf(io)
  const draft = `${path}.${process.pid}`
  try {
    makeDirectorySync(dirname(path))
    writeFileSync(draft, `${JSON.stringify(session)}\n`, { mode: 0o600 })
    renameSync(draft, path)
  } catch (error) {
    const hint = 'Set HOME to a directory that you may write into.'
    throw new CliError(EXIT.failure, `the session cannot be kept: ${errorText(error)}`, hint)
  }
}

/** Whether a session was made by the server of this address, whether or not a slash ends either. */
export const isOf = (session: SavedSession, endpoint: string): boolean =>
  addressOf(session.endpoint) === addressOf(endpoint)

const addressOf = (endpoint: string): string =>
  (URL.canParse(endpoint) ? new URL(endpoint).href : endpoint).replace(/\/+$/, '')

export const removeSession = (io: Io): void => rmSync(pathOf(io), { force: true })
