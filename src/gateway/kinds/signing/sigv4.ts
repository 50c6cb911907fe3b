import { createHash, createHmac } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'

export interface AwsKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
}

/** A POST. */
export interface AwsRequest {
  /** As the header tells it. */
  readonly host: string
  /** As it goes over the wire: names in it are encoded already, and will be once more to be signed. */
  readonly path: string
  readonly body: Buffer | string
}

/**
 * Signs requests with Signature Version 4; the headers `host x-amz-content-sha256 x-amz-date x-amz-security-token` and
 * no others. Our own because it is on the path of every call: the library that stores use takes ten times as long (125 us).
 * Contract: gateway.md 5.2.
 */
export class AwsSigner {
  readonly #scope: string
  readonly #names: readonly string[]
  readonly #clock: AwsClock
  /** Of a day and secret: deriving it takes four steps. */
  #key: { readonly of: string; readonly value: Buffer } | undefined

  constructor(service: string, region: string, clock: AwsClock) {
    this.#names = [region, service, 'aws4_request']
    this.#scope = this.#names.join('/')
    this.#clock = clock
  }

  /** The headers that make the request signed, names and values in turn. */
  sign({ host, path, body }: AwsRequest, { accessKeyId, secretAccessKey, sessionToken }: AwsKeys): string[] {
    const date = amzDate(this.#clock.now())
    const bodyHash = sha256(body)
    const token = sessionToken === undefined ? [] : ['x-amz-security-token', sessionToken]
    const headers = ['x-amz-content-sha256', bodyHash, 'x-amz-date', date, ...token]
    const names = `host;x-amz-content-sha256;x-amz-date${token.length > 0 ? ';x-amz-security-token' : ''}`
    const lines = `host:${host}\nx-amz-content-sha256:${bodyHash}\nx-amz-date:${date}\n${token.join(':')}`
    const canonical = `POST\n${encodedAgain(path)}\n\n${lines}${token.length > 0 ? '\n' : ''}\n${names}\n${bodyHash}`
    const day = date.slice(0, 8)
    const toSign = `AWS4-HMAC-SHA256\n${date}\n${day}/${this.#scope}\n${sha256(canonical)}`
    const signature = hmac(this.#keyOf(day, secretAccessKey), toSign).toString('hex')
    const credential = `Credential=${accessKeyId}/${day}/${this.#scope}`
    headers.push('authorization', `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${names}, Signature=${signature}`)
    return headers
  }

  #keyOf(day: string, secret: string): Buffer {
    const of = `${day} ${secret}`
    if (this.#key?.of !== of) {
      const value = this.#names.reduce((key, name) => hmac(key, name), hmac(`AWS4${secret}`, day))
      this.#key = { of, value }
    }
    return this.#key.value
  }
}

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** All but what RFC 3986 leaves alone, and the slashes. */
const encodedAgain = (path: string): string =>
  path.replace(/[^A-Za-z0-9\-._~/]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)

/** `20260131T235959Z` */
const amzDate = (ms: number): string => new Date(ms).toISOString().replace(/[:-]|\.\d{3}/g, '')

/** In ms; NaN for what was not signed. */
const signedAt = (headers: readonly string[]): number => {
  const date = headers[headers.indexOf('x-amz-date') + 1] ?? ''
  return Date.parse(date.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5'))
}

/** AWS refuses what is 5 min off; less than this is no reason for a refusal. */
const SKEW_MS = 60_000
const SKEWED =
  /InvalidSignature|SignatureDoesNotMatch|RequestExpired|RequestTimeTooSkewed|RequestInTheFuture|Signature expired/

/** The time as the services of one address see it. */
export class AwsClock {
  readonly #clock: Clock
  #ahead = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now() + this.#ahead
  }

  /**
   * Learns the time from a refusal that tells another one than was signed; true when it did: the same call may go once more.
   * Others that were signed before may have told it meanwhile.
   * @param date the answer's own header
   * @param reason its error code, wherever it stood
   * @param signed headers of the call, names and values in turn
   */
  learn(status: number, date: string | undefined, reason: string, signed: readonly string[]): boolean {
    if ((status !== 403 && status !== 400) || !SKEWED.test(reason)) return false
    const theirs = Date.parse(date ?? '')
    if (!(Math.abs(theirs - signedAt(signed)) >= SKEW_MS)) return false
    this.#ahead = theirs - this.#clock.now()
    return true
  }
}
