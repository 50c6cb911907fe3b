import { setTimeout as sleep } from 'node:timers/promises'
import { AwsClient } from 'aws4fetch'
import { backOff } from '../../../base/back-off.ts'
import { eachBounded } from '../../../base/bounded.ts'
import { sha256 } from '../../../base/hash.ts'
import { ContentError, type ContentStore, type StoredObject } from './store.ts'

/** How to reach an S3 server; requests are path-style, so any server will do. */
export interface S3Settings {
  /** `https://host[:port]`, without a bucket. */
  endpoint: string
  region: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string | undefined
}

const AT_ONCE = 32
const ATTEMPTS = 4
/** Of one attempt; all of them end within the 30 s that a request may take. */
const ATTEMPT_MS = 6000
const RETRY_MS = { first: 100, most: 2000 }

/** Bodies as objects of a bucket, below a prefix. Signature version 4. */
export class S3Content implements ContentStore {
  readonly location: string
  readonly #client: AwsClient
  readonly #bucket: string
  /** Empty, or ending in `/`. */
  readonly #prefix: string

  /** `dsn` is `s3://bucket/prefix`. */
  constructor(dsn: string, { endpoint, ...credentials }: S3Settings) {
    const [bucket = '', ...prefix] = dsn.slice('s3://'.length).split('/').filter(Boolean)
    this.location = `s3://${[bucket, ...prefix].join('/')} at ${endpoint}`
    this.#bucket = `${endpoint.replace(/\/+$/, '')}/${encodeURIComponent(bucket)}`
    this.#prefix = prefix.map((part) => `${part}/`).join('')
    const { sessionToken, ...rest } = credentials
    this.#client = new AwsClient({ ...rest, ...(sessionToken && { sessionToken }), service: 's3', retries: 0 })
  }

  async put(key: string, body: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#send('PUT', this.#urlOf(key), signal, Buffer.from(body))
  }

  async get(keys: readonly string[], signal?: AbortSignal): Promise<Map<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>()
    await eachBounded(keys, AT_ONCE, async (key) => {
      const body = await this.#send('GET', this.#urlOf(key), signal)
      if (body) found.set(key, body)
    })
    return found
  }

  async delete(keys: readonly string[]): Promise<void> {
    await eachBounded(keys, AT_ONCE, (key) => this.#send('DELETE', this.#urlOf(key)))
  }

  async *list(prefix: string, after?: string): AsyncGenerator<StoredObject[]> {
    for (let last = after; ;) {
      const xml = await this.#list(this.#prefix + prefix, last)
      const page = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, entry = '']) => ({
        key: tag(entry, 'Key').slice(this.#prefix.length),
        storedAt: Date.parse(tag(entry, 'LastModified')),
      }))
      if (page.length > 0) yield page
      if (tag(xml, 'IsTruncated') !== 'true' || page.length === 0) return
      last = page.at(-1)?.key
    }
  }

  async ping(): Promise<void> {
    if (!(await this.#send('HEAD', this.#bucket))) throw new ContentError(`${this.location}: there is no such bucket`)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #list(prefix: string, after: string | undefined): Promise<string> {
    const query = new URLSearchParams({ 'list-type': '2', prefix })
    if (after !== undefined) query.set('start-after', this.#prefix + after)
    return (await this.#send('GET', `${this.#bucket}?${query.toString()}`))?.toString() ?? ''
  }

  #urlOf(key: string): string {
    return `${this.#bucket}/${(this.#prefix + key).split('/').map(encodeURIComponent).join('/')}`
  }

  /** The body of the answer; undefined for a 404 that means that the object is not there. */
  async #send(
    method: string,
    url: string,
    signal?: AbortSignal,
    body?: Buffer<ArrayBuffer>,
  ): Promise<Buffer | undefined> {
    for (let failures = 1; ; failures++) {
      signal?.throwIfAborted()
      const outcome = await this.#attempt(method, url, signal, body)
      if (!('refused' in outcome)) return outcome.body
      if (!outcome.passing || failures === ATTEMPTS) {
        throw new ContentError(`${this.location}: ${method} failed: ${outcome.refused}`)
      }
      await sleep(backOff(failures, RETRY_MS.first, RETRY_MS.most), undefined, signal && { signal })
    }
  }

  async #attempt(
    method: string,
    url: string,
    signal?: AbortSignal,
    body?: Buffer<ArrayBuffer>,
  ): Promise<{ body: Buffer | undefined } | { refused: string; passing: boolean }> {
    const timeout = AbortSignal.timeout(ATTEMPT_MS)
    try {
      const headers = { 'x-amz-content-sha256': sha256(body ?? '') }
      const request = await this.#client.sign(url, { method, headers, ...(body && { body }) })
      const response = await fetch(request, {
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
        redirect: 'manual',
      })
      const answer = Buffer.from(await response.arrayBuffer())
      if (response.ok) return { body: answer }
      const code = tag(answer.toString('utf8', 0, 4000), 'Code')
      if (response.status === 404 && code !== 'NoSuchBucket') return { body: undefined }
      return { refused: wordsFor(response.status, code), passing: response.status >= 500 || response.status === 429 }
    } catch (error) {
      signal?.throwIfAborted()
      return { refused: timeout.aborted ? `no answer within ${ATTEMPT_MS} ms` : reasonOf(error), passing: true }
    }
  }
}

/** What one can do about it; the server's own text may quote the request. */
function wordsFor(status: number, code: string): string {
  const name = code === '' ? `${status}` : `${status} ${code}`
  if (status === 403 || status === 401) {
    return `${name}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of that key`
  }
  if (code === 'NoSuchBucket') return `${name}: make the bucket, or correct storage.content_dsn`
  if (status >= 300 && status < 400) return `${name}: check AWS_REGION and AWS_ENDPOINT_URL`
  return name
}

/** The system's word for a network fault; `fetch` itself only says that it failed. */
function reasonOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return 'it cannot be reached'
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message.slice(0, 200)
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The text of the first element of that name. */
const tag = (xml: string, name: string): string =>
  (new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? '')
    .replaceAll(/&(amp|lt|gt|quot|apos);/g, (_, entity: string) => ENTITIES[entity] ?? '')
    .replaceAll(/&#(x?)([0-9a-f]+);/gi, (_, hex: string, digits: string) =>
      String.fromCodePoint(Number.parseInt(digits, hex === '' ? 10 : 16)),
    )
