import { createServer, type RequestListener, type Server } from 'node:http'
import { pino } from 'pino'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Scope } from '../../src/kernel/model/fields.ts'
import { Kernel, type KernelOptions } from '../../src/kernel/service.ts'
import { componentsOf } from '../../src/kernel/wiring.ts'
import { hasPostgres } from '../support/postgres.ts'
import { createStorePlace, openStore, type OpenStore, type StorePlace } from './support.ts'

export interface Reply {
  status: number
  headers: Headers
  /** As sent. */
  text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  body: any
}

export interface CallOptions {
  headers?: Record<string, string>
  /** Sent as it is; bytes go without a content type. */
  raw?: string | Uint8Array
}

/** Requests of one scope, which every query names. */
export interface ScopedApi {
  scope: Scope
  get(path: string, options?: CallOptions): Promise<Reply>
  /** @param key an Idempotency-Key */
  post(path: string, body?: object, key?: string): Promise<Reply>
  put(path: string, body: object, key?: string): Promise<Reply>
  patch(path: string, body: object, key?: string): Promise<Reply>
}

/** A request handler on a free port. */
export interface ServedHandler {
  /** Of the API root. */
  url: string
  /** Sends a request to a path below the API root, which says nothing of a scope by itself. */
  call(method: string, path: string, body?: object, options?: CallOptions): Promise<Reply>
  api(scope: Scope): ScopedApi
  /** Ends the server; the store stays open. */
  stop(): Promise<void>
}

export interface OpenKernel extends OpenStore, Omit<ServedHandler, 'api'> {
  kernel: Kernel
  /** In a scope of its own when none is given. */
  api(scope?: Scope): ScopedApi
}

export type ServedParts = Partial<KernelOptions> & { token?: string; timeoutMs?: number }

/** Runs the tests with a kernel over each store, served over HTTP. */
export function describeKernels(name: string, define: (open: () => OpenKernel) => void, parts: ServedParts = {}): void {
  for (const driver of ['memory', 'sqlite', 'postgres'] as const) {
    describe.skipIf(driver === 'postgres' && !hasPostgres)(`${name} [${driver}]`, () => {
      let place: StorePlace | undefined
      let opened: OpenKernel | undefined
      beforeAll(async () => {
        place = await createStorePlace(driver)
        opened = await openKernel(await openStore(place), parts)
      })
      afterAll(async () => {
        await opened?.stop()
        await opened?.store.close()
        await place?.remove()
      })
      define(() => {
        if (!opened) throw new Error('the kernel is not open yet')
        return opened
      })
    })
  }
}

/** A kernel over a store, with all components that there are, served on a free port. */
export async function openKernel(
  open: OpenStore,
  { token, timeoutMs, ...parts }: ServedParts = {},
): Promise<OpenKernel> {
  const log = pino({ level: 'silent' })
  const kernel = new Kernel({ store: open.store, log, components: componentsOf(parts, true), ...parts })
  const served = await serveHandler(
    kernel.httpHandler({ ...(token !== undefined && { token }), ...(timeoutMs !== undefined && { timeoutMs }) }),
  )
  return { ...open, ...served, kernel, api: (scope = open.scope()) => served.api(scope) }
}

export async function serveHandler(handler: RequestListener): Promise<ServedHandler> {
  const server = createServer(handler)
  const url = `${await listen(server)}/api/v1`
  const call: ServedHandler['call'] = (method, path, body, options) => send(url, method, path, body, options)
  return { url, call, api: (scope) => scopedApi(call, scope), stop: () => close(server) }
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : ''
}

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

async function send(
  url: string,
  method: string,
  path: string,
  body?: object,
  { headers = {}, raw }: CallOptions = {},
): Promise<Reply> {
  const sent = raw ?? (body && JSON.stringify(body))
  const response = await fetch(url + path, {
    method,
    headers: { ...(typeof sent === 'string' && { 'Content-Type': 'application/json' }), ...headers },
    ...(sent !== undefined && { body: sent }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) }
}

function scopedApi(call: ServedHandler['call'], scope: Scope): ScopedApi {
  const query = new URLSearchParams({ scopeKind: scope.kind, scopeId: scope.id })
  const at = (path: string): string => `${path}${path.includes('?') ? '&' : '?'}${query.toString()}`
  const write =
    (method: string) =>
    (path: string, body: object = {}, key?: string): Promise<Reply> =>
      call(method, at(path), body, { headers: key === undefined ? {} : { 'Idempotency-Key': key } })
  return {
    scope,
    get: (path, options) => call('GET', at(path), undefined, options),
    post: write('POST'),
    put: write('PUT'),
    patch: write('PATCH'),
  }
}
