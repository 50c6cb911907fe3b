import { randomBytes } from 'node:crypto'
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import * as z from 'zod'
import { makeDirectorySync } from '../../base/directory.ts'
import { errorText } from '../../base/errors.ts'
import { ConfigError } from '../../config/errors.ts'

/** The keys that secrets are sealed with, by their ids; new seals are made with the current one. */
export interface Keys {
  current: string
  keys: Readonly<Record<string, Buffer>>
}

const SETTING = 'platform.key_file'
const KEY_BYTES = 32

const fileSchema = z
  .strictObject({ current: z.string(), keys: z.record(z.string().regex(/^[\w-]+$/), z.base64()) })
  .refine(({ current, keys }) => Object.hasOwn(keys, current), 'the current key is not among the keys')

/**
 * Reads `{"current": "k1", "keys": {"k1": "<base64, 32 bytes>"}}`. Contract: git-host.md 2.4.
 * @throws ConfigError when it cannot be read, is open to others, or is not of this form
 */
export function readKeyFile(path: string): Keys {
  try {
    const found = statSync(path)
    if (!found.isFile()) throw new Error('it is no file') // to open a pipe would wait for who writes into it
    const { mode } = found
    if (process.platform !== 'win32' && (mode & 0o777) !== 0o600) {
      const written = (mode & 0o7777).toString(8).padStart(4, '0')
      throw new Error(`it has mode ${written} and must have 0600: chmod 600 ${path}`)
    }
    return parseKeys(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new ConfigError(SETTING, `${SETTING} ${path} cannot be used: ${errorText(error)}`)
  }
}

/** What the file holds must not get into a message. */
function parseKeys(text: string): Keys {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    throw new Error('it is not JSON')
  }
  const { data } = fileSchema.safeParse(content)
  if (!data) throw new Error('it must hold {"current": "<id>", "keys": {"<id>": "<base64>"}}')
  const keys = Object.entries(data.keys).map(([id, key]): [string, Buffer] => [id, Buffer.from(key, 'base64')])
  if (keys.some(([, key]) => key.length !== KEY_BYTES)) throw new Error(`each key must have ${KEY_BYTES} bytes`)
  return { current: data.current, keys: Object.fromEntries(keys) }
}

/** Makes the file with a first key; false when there is one, which stays. */
export function createKeyFile(path: string): boolean {
  makeDirectorySync(dirname(path))
  const draft = writeDraft(path, { current: 'k1', keys: { k1: randomBytes(KEY_BYTES) } })
  let isNew = true
  try {
    linkSync(draft, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    isNew = false
  } finally {
    rmSync(draft)
  }
  flushDirectory(path)
  return isNew
}

/** The same keys and a new one, which becomes the current. */
export function withNewKey({ keys }: Keys): Keys {
  const numbers = Object.keys(keys).map((id) => Number(/^k(\d+)$/.exec(id)?.[1] ?? 0))
  const current = `k${Math.max(0, ...numbers) + 1}`
  return { current, keys: { ...keys, [current]: randomBytes(KEY_BYTES) } }
}

/** Puts these keys in the place of the file's, of what a link leads to; a reader never meets half a file, and its owner stays its owner. */
export function replaceKeyFile(path: string, keys: Keys): void {
  const target = existsSync(path) ? realpathSync(path) : path
  const draft = writeDraft(target, keys)
  const owner = statSync(target, { throwIfNoEntry: false })
  if (owner && process.getuid?.() === 0) chownSync(draft, owner.uid, owner.gid)
  renameSync(draft, target)
  flushDirectory(target)
}

function writeDraft(path: string, { current, keys }: Keys): string {
  const encoded = Object.entries(keys).map(([id, key]): [string, string] => [id, key.toString('base64')])
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  const file = openSync(draft, 'wx', 0o600)
  try {
    writeFileSync(file, `${JSON.stringify({ current, keys: Object.fromEntries(encoded) })}\n`)
    fsyncSync(file)
  } catch (error) {
    rmSync(draft) // on a full disk there is room for an empty file
    throw error
  } finally {
    closeSync(file)
  }
  return draft
}

/** A key must be on the disk under its name before anything is sealed with it. */
function flushDirectory(path: string): void {
  const directory = openSync(dirname(path), 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
