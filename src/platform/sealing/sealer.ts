import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { errorText } from '../../base/errors.ts'
import type { Logger } from '../ports.ts'
import { readKeyFile, type Keys } from './key-file.ts'

/** Where a sealed value lies: it opens nowhere else. */
export interface SealedPlace {
  organizationId: number
  table: string
  /** The value of the column that the table's migration registered. */
  rowId: string | number
  column: string
}

/** A value that does not open: tampered with, moved, or sealed with a key that is gone. The operation that needs it fails. */
export class SealError extends Error {}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Seals secrets at rest as `v1.<key id>.<nonce>.<ciphertext+tag>` in base64url: AES-256-GCM with a random nonce, bound to
 * organization, table, row and column. A changed key file is picked up with the next value. Contract: git-host.md 2.4.
 */
export class Sealer {
  readonly path: string
  readonly #log: Logger
  #known: { keys: Keys; stamp: string } | undefined
  #refused: string | undefined

  constructor(path: string, log: Logger) {
    this.path = path
    this.#log = log
  }

  /**
   * The keys in force: those of the file, or the last good ones while it cannot be used.
   * @throws ConfigError when it never could
   */
  keys(): Keys {
    const stamp = stampOf(this.path)
    if (this.#known && (stamp === this.#known.stamp || stamp === this.#refused)) return this.#known.keys
    try {
      const keys = readKeyFile(this.path)
      this.#known = { keys, stamp }
      return keys
    } catch (error) {
      if (!this.#known) throw error
      this.#refused = stamp
      this.#log.error({ reason: errorText(error) }, 'the key file cannot be used; the keys read before stay in force')
      return this.#known.keys
    }
  }

  seal(plain: string, place: SealedPlace): string {
    const { current, keys } = this.keys()
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', keyOf(keys, current), nonce)
    cipher.setAAD(associatedData(place))
    const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `v1.${current}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`
  }

  /** @throws SealError */
  open(value: string, place: SealedPlace): string {
    const [version, id = '', nonce = '', text = '', ...rest] = value.split('.')
    const sealed = Buffer.from(text, 'base64url')
    try {
      if (version !== 'v1' || rest.length > 0 || sealed.length < TAG_BYTES) throw new SealError('not of the form v1')
      const key = keyOf(this.keys().keys, id)
      const options = { authTagLength: TAG_BYTES }
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'), options)
      decipher.setAAD(associatedData(place))
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
      return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8')
    } catch (error) {
      const { table, column, rowId } = place
      throw new SealError(`${table}.${column} of row ${rowId} does not open: ${errorText(error)}`, { cause: error })
    }
  }
}

/** The id of the key that a value is sealed with. */
export const keyIdOf = (value: string): string => value.split('.', 2)[1] ?? ''

function keyOf(keys: Keys['keys'], id: string): Buffer {
  const key = Object.hasOwn(keys, id) ? keys[id] : undefined
  if (!key) throw new SealError(`the key file has no key ${id}`)
  return key
}

const associatedData = ({ organizationId, table, rowId, column }: SealedPlace): Buffer =>
  Buffer.from(`${organizationId}|${table}|${rowId}|${column}`)

/** Differs whenever another file lies at the path, or its content or mode changed. */
function stampOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false })
  return found ? [found.ino, found.size, found.mtimeMs, found.mode].join(' ') : 'none'
}
