import { backOff } from '../../base/back-off.ts'
import { MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from '../errors.ts'
import { exchange, inUtf8, type Answer, type Call, type Connection, type Path } from '../transport.ts'
import { KernelApiError, refusal } from './errors.ts'
import type { Page, Scope } from './types.ts'

/** Of every call. */
export interface CallOptions {
  /** Instead of the client's. */
  scope?: Scope
  /** Gives the call up. */
  signal?: AbortSignal
}

export interface WriteOptions extends CallOptions {
  /** The same key with the same content does nothing twice: only with one is a write tried again. */
  idempotencyKey?: string
}

export interface WireOptions {
  connection: Connection
  scope: Scope
  retries: number
  random: () => number
}

/** A server is back from a restart in a second or so: two waits are to outlast that. */
const FIRST_MS = 750
const MOST_MS = 5000

/** How the areas of the client speak to the kernel: scope, keys, and what is tried again. Contract: kernel-2.md 15. */
export class Wire {
  readonly #options: WireOptions

  constructor(options: WireOptions) {
    this.#options = options
  }

  /** A GET of one thing. */
  async get<Body>(path: Path, query: object = {}, options: CallOptions = {}): Promise<Body> {
    return parsed(await this.#send({ method: 'GET', path, query: this.#scoped(query, options) }, options))
  }

  /** A GET that has no scope. */
  async open<Body>(path: Path, accepts?: Call['accepts'], { signal }: CallOptions = {}): Promise<Body> {
    return parsed(await this.#send({ method: 'GET', path, ...(accepts && { accepts }) }, { ...(signal && { signal }) }))
  }

  /** A GET of a bare array. */
  async page<Item>(path: Path, query: object, options: CallOptions = {}): Promise<Page<Item>> {
    const answer = await this.#send({ method: 'GET', path, query: this.#scoped(query, options) }, options)
    const nextCursor = answer.headers.get('x-next-cursor')
    return { items: await parsed<Item[]>(answer), ...(nextCursor !== null && { nextCursor }) }
  }

  async write<Body>(method: string, path: Path, body: object, options: WriteOptions = {}): Promise<Body> {
    const scope = options.scope ?? this.#options.scope
    const headers = { 'Idempotency-Key': inUtf8(options.idempotencyKey) }
    return parsed(await this.#send({ method, path, body: { ...body, scope }, headers }, options))
  }

  #scoped(query: object, { scope = this.#options.scope }: CallOptions): object {
    return { ...query, scopeKind: scope.kind, scopeId: scope.id }
  }

  /** GETs and writes with a key are tried again when the network fails or the server is not up. */
  async #send(call: Call, { signal, idempotencyKey }: WriteOptions): Promise<Answer> {
    const { connection, retries, random } = this.#options
    const mayRepeat = call.method === 'GET' || idempotencyKey !== undefined
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(connection, { ...call, signal })
      if (!(outcome instanceof KernelApiError)) return outcome
      const isPassing = outcome.status === 503 || outcome.cause instanceof MemoryNetworkError
      if (!mayRepeat || !isPassing || attempt > retries) throw outcome
      await pause(FIRST_MS + backOff(attempt, FIRST_MS, MOST_MS, random), signal)
    }
  }

  async #attempt(connection: Connection, call: Call): Promise<Answer | KernelApiError> {
    try {
      const answer = await exchange(connection, call)
      if (answer.ok || call.accepts?.(answer.status, answer.text)) return answer
      return refusal(answer.status, answer.text, answer.headers)
    } catch (error) {
      const isUnanswered = [MemoryNetworkError, MemoryTimeoutError, MemoryRequestError].some(
        (kind) => error instanceof kind,
      )
      if (!isUnanswered || !(error instanceof Error)) throw error
      return new KernelApiError(0, error.message, { cause: error })
    }
  }
}

async function parsed<Body>({ status, text, headers }: Answer): Promise<Body> {
  try {
    const body: Body = JSON.parse(text) // the wire's promise: these types are tested against the server's
    return body
  } catch (cause) {
    const requestId = headers.get('x-request-id')
    throw new KernelApiError(status, 'the answer is not one of a kernel', {
      cause,
      ...(requestId !== null && { requestId }),
    })
  }
}

/** @throws the signal's reason when it aborts */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
