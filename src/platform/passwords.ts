import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { rateLimited } from './errors.ts'

export interface ScryptParameters {
  /** Binary logarithm of N. */
  ln: number
  r: number
  p: number
}

/** One of OWASP's equal choices for scrypt: 32 MiB. */
const STANDARD: ScryptParameters = { ln: 15, r: 8, p: 3 }
const KEY_BYTES = 32
/** Hashing takes threads that files, names and compression need too. */
const AT_ONCE = 2
const WAITING_MAX = 100

/**
 * Hashes of passwords, as `$scrypt$ln=15,r=8,p=3$<salt>$<hash>` in base64: the parameters stand with each, so they can be
 * raised later. Works off the event loop, two at a time.
 */
export class Passwords {
  readonly #parameters: ScryptParameters
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(parameters: ScryptParameters = STANDARD) {
    this.#parameters = parameters
  }

  /** @throws rate_limited 429 when too many wait already. */
  async hash(password: string): Promise<string> {
    const { ln, r, p } = this.#parameters
    const salt = randomBytes(16)
    const key = await this.#derive(password, salt, this.#parameters)
    return `$scrypt$ln=${ln},r=${r},p=${p}$${salt.toString('base64')}$${key.toString('base64')}`
  }

  /** Whether it is the password; false for no hash at all, which takes as long. @throws as `hash`. */
  async verify(password: string, stored: string | undefined): Promise<boolean> {
    const known = stored === undefined ? undefined : parse(stored)
    const { parameters, salt, key } = known ?? {
      parameters: this.#parameters,
      salt: Buffer.alloc(16),
      key: Buffer.alloc(KEY_BYTES),
    }
    const isEqual = timingSafeEqual(await this.#derive(password, salt, parameters), key)
    return isEqual && known !== undefined
  }

  /** False for a hash made with other parameters than a new one would be. */
  isCurrent(stored: string): boolean {
    const { ln, r, p } = parse(stored).parameters
    return ln === this.#parameters.ln && r === this.#parameters.r && p === this.#parameters.p
  }

  async #derive(password: string, salt: Buffer, { ln, r, p }: ScryptParameters): Promise<Buffer> {
    await this.#turn()
    try {
      return await new Promise((resolve, reject) => {
        const N = 2 ** ln
        const options = { N, r, p, maxmem: 2 * 128 * N * r }
        // Keyboards and systems compose accents differently.
        scrypt(password.normalize('NFC'), salt, KEY_BYTES, options, (error, key) =>
          error ? reject(error) : resolve(key),
        )
      })
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }

  /** Resolves when it is this one's turn. */
  async #turn(): Promise<void> {
    if (this.#waiting.length >= WAITING_MAX) throw rateLimited('too many logins at once', 1000)
    if (this.#running < AT_ONCE) this.#running++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}

function parse(stored: string): { parameters: ScryptParameters; salt: Buffer; key: Buffer } {
  const [, ln, r, p, salt = '', key = ''] = /^\$scrypt\$ln=(\d+),r=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/.exec(stored) ?? []
  if (ln === undefined) throw new Error('a stored password hash is not of the form it was written in')
  return {
    parameters: { ln: Number(ln), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt, 'base64'),
    key: Buffer.from(key, 'base64'),
  }
}
