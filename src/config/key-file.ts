import { readFileSync, statSync } from 'node:fs'
import { errorText } from '../base/errors.ts'
import { sha256 } from '../base/hash.ts'
import { ConfigError } from './errors.ts'

const KEY = 'server.api_key_file'
const MODES = [0o600, 0o640]

/** The key in a file, white space around it trimmed. Contract: memory.md 10.
 *  @throws ConfigError when it is unreadable, its mode is neither 0600 nor 0640, or it is empty. */
export function readKeyFile(path: string): string {
  const { mode, text } = open(path)
  if (process.platform !== 'win32' && !MODES.includes(mode)) {
    const written = mode.toString(8).padStart(4, '0')
    throw new ConfigError(KEY, `${KEY} ${path} has mode ${written}; it must be 0600 or 0640: chmod 600 ${path}`)
  }
  const key = text.trim()
  if (key === '') throw new ConfigError(KEY, `${KEY} ${path} is empty`)
  return key
}

function open(path: string): { mode: number; text: string } {
  try {
    return { mode: statSync(path).mode & 0o7777, text: readFileSync(path, 'utf8') }
  } catch (error) {
    throw new ConfigError(KEY, `${KEY} ${path} cannot be read: ${errorText(error)}`)
  }
}

/** What a log may show of a key: the first 8 hex digits of its SHA-256. */
export const keyTag = (key: string): string => sha256(key).slice(0, 8)
