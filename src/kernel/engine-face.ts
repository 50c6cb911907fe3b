import type { RequestListener } from 'node:http'
import type { Logger } from 'pino'
import type { Assembled } from './assemble.ts'
import type { KernelEngineOptions } from './engine-options.ts'

const NAMES: Record<keyof KernelEngineOptions, true> = {
  store: true,
  persistentStore: true,
  logger: true,
  workerConcurrencyLimit: true,
  agentRunWorkers: true,
  dynamicAgentRunWorkers: true,
  actionWorkers: true,
  dynamicActionWorkers: true,
  actionPolicy: true,
  actionProposalValidators: true,
  approvalAuthorizer: true,
  skillCatalog: true,
  modelHost: true,
  runDispatcher: true,
  transports: true,
  hostIdentity: true,
  registryMutationAuthority: true,
  clock: true,
}

/**
 * A kernel that works in the process of an embedder. What it is made of is loaded when it starts: whoever uses something
 * else of the library waits for none of it. Contract: kernel-2.md 14
 */
export class KernelEngine {
  readonly #options: KernelEngineOptions
  #isStarted = false
  #running: Assembled | undefined
  #stopping: Promise<void> | undefined

  /** @throws TypeError for an option that is unknown */
  constructor(options: KernelEngineOptions = {}) {
    const unknown = Object.keys(options).find((name) => !Object.hasOwn(NAMES, name))
    if (unknown !== undefined) throw new TypeError(`KernelEngine has no option ${unknown}`)
    this.#options = options
  }

  /**
   * Opens what it owns and begins to work.
   * @param signal stops it
   * @throws TypeError for an option that does not fit; Error with two stores, when it was started before, or when the signal
   * fired already
   */
  async start(signal?: AbortSignal): Promise<void> {
    const { store, persistentStore, logger } = this.#options
    if (this.#isStarted) throw new Error('a KernelEngine starts once: make another')
    if (store && persistentStore) throw new Error('give a KernelEngine store or persistentStore, not both')
    signal?.throwIfAborted()
    this.#isStarted = true
    const { assemble } = await import('./assemble.ts')
    this.#running = await assemble(this.#options, logger ?? (await defaultLogger()))
    await this.#running.engine.start()
    signal?.addEventListener('abort', () => void this.stop(), { once: true })
  }

  /** Claims nothing more, gives what is under way 10 s to end, and closes the store that it owns. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    if (!this.#running) return
    const { engine, store } = this.#running
    await engine.stop()
    if (store !== this.#options.store) await store.close()
  }

  /** A request listener for `/api/v1`; 503 until the engine is started. */
  httpHandler(options: { token?: string } = {}): RequestListener {
    let handler: RequestListener | undefined
    return (request, response) => {
      handler ??= this.#running?.kernel.httpHandler(options)
      if (handler) return handler(request, response)
      response.writeHead(503, { 'Content-Type': 'application/json; charset=utf-8', 'Retry-After': '1' })
      response.end('{"error":"the kernel is not started"}\n')
    }
  }
}

async function defaultLogger(): Promise<Logger> {
  const { createLogger } = await import('../base/log.ts')
  return createLogger('info', 'json')
}
