import type { IncomingMessage, RequestListener } from 'node:http'
import type { Logger } from 'pino'
import { createUuidSource } from '../base/ids.ts'
import { checkOperation, kernelRoutes, type Wiring } from './capabilities.ts'
import type { Component } from './capability-table.ts'
import type { KernelContext } from './context.ts'
import { settleDependencies } from './engine/forks.ts'
import { Health, type HealthChecks } from './health.ts'
import { Hints } from './hints.ts'
import type { Party } from './model/fields.ts'
import { cancelRequestsOf, settleRequestOfChild } from './requests/settle.ts'
import { createHttpHandler } from './routes/edge.ts'
import { HANDLERS } from './routes/index.ts'
import type { Handler, Handlers } from './routes/route.ts'
import { serviceRoutes } from './routes/service.ts'
import { leaveDescendants } from './runs/cancel.ts'
import { settleAllocations } from './runs/allocations.ts'
import { cancelOpenCalls } from './runs/own-work.ts'
import type { KernelStore } from './store/store.ts'
import type { KernelParts } from './wiring.ts'

export interface KernelOptions extends KernelParts {
  /** Open; whoever opened it closes it. */
  store: KernelStore
  log: Logger
  /** What there is of what the capability table needs. */
  components: Iterable<Component>
  /** Whether requests may change installed skills. */
  mutationAuthority?: boolean
  /** Who a request is from, where the host knows: in place of what the request claims. */
  hostIdentity?: HostIdentity
  /** Of what health tells, beside the store and its workers. */
  checks?: HealthChecks
}

type HostIdentity = (request: IncomingMessage) => Party | undefined | Promise<Party | undefined>

/** What follows in the transaction in which a run came to its end. */
const ENDINGS: KernelContext['endings'] = [
  cancelOpenCalls,
  settleRequestOfChild,
  cancelRequestsOf,
  settleDependencies,
  settleAllocations,
  leaveDescendants,
]

const TABLE = new Map(kernelRoutes().map((route) => [`${route.method} ${route.path}`, route]))

/** The rules of agent runs over one store, and what of them is served. Workers belong to the engine. */
export class Kernel {
  readonly context: KernelContext
  readonly wiring: Wiring
  readonly health: Health
  /** Of the changes of this process. */
  readonly hints = new Hints()
  readonly hostIdentity: HostIdentity | undefined
  readonly #handlers: Handlers

  constructor(options: KernelOptions) {
    const { store, log, components, mutationAuthority = false, hostIdentity, checks = {}, ...parts } = options
    this.context = {
      ...parts,
      store,
      log,
      newId: createUuidSource(store),
      endings: ENDINGS,
      hint: this.hints.hint,
    }
    this.hostIdentity = hostIdentity
    this.health = new Health(store, checks)
    this.#handlers = { ...serviceRoutes(this), ...HANDLERS }
    this.wiring = {
      components: new Set(components),
      served: new Set(Object.keys(this.#handlers)),
      mutationAuthority,
    }
  }

  /** `METHOD path` of every route, served or not. */
  get routes(): string[] {
    return [...new Set([...TABLE.keys(), ...Object.keys(this.#handlers)])]
  }

  /** @throws not_configured, forbidden as the capability table says */
  handlerOf(route: string): Handler {
    const known = TABLE.get(route)
    if (known) checkOperation(known, this.wiring)
    const handler = this.#handlers[route]
    if (!handler) throw new Error(`nothing serves ${route}`)
    return handler
  }

  /** A request listener for `/api/v1`. */
  httpHandler(options: { token?: string; timeoutMs?: number } = {}): RequestListener {
    return createHttpHandler(this, options)
  }
}
