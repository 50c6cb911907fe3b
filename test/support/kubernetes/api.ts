import { randomUUID } from 'node:crypto'
import { EventEmitter, on, once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { createAuthority } from '../certificates.ts'
import { jsonPatch, mergePatch, strategicPatch, type Json } from './patches.ts'
import { checkJob, KINDS, selects, StatusError, valueAt, type ApiObject } from './objects.ts'
import { ContainerLog, logLines, RunningContainer } from './pods.ts'

export interface ApiCall {
  readonly method: string
  readonly path: string
  readonly query: Record<string, string>
  readonly contentType: string | undefined
  readonly body: Json
}

/** What happens to a call instead of its answer; `cut` breaks the connection after so many lines of a stream. */
export interface Fault {
  readonly status?: number
  readonly message?: string
  readonly retryAfter?: number
  readonly hang?: boolean
  readonly cut?: number
}

/** An API server as far as a client can tell: it checks what it is sent as the real one does, and runs jobs. */
export class KubernetesApi {
  readonly url: string
  readonly ca: string
  readonly client: { cert: string; key: string }
  readonly calls: ApiCall[] = []
  /** Bearer tokens that are taken. */
  readonly tokens = new Set(['token-1'])
  /** Asked before each call is answered. */
  fault: (call: ApiCall) => Fault | undefined = () => undefined
  /** Page tokens given out before are expired. */
  expirePages = false
  /** What becomes of new pods instead of running. */
  podFate: ((pod: ApiObject) => void) | undefined
  private readonly objects = new Map<string, ApiObject>()
  private readonly changes = new EventEmitter<{ change: [string, ApiObject] }>()
  private readonly logs = new Map<string, ContainerLog>()
  private readonly running = new Map<string, RunningContainer>()
  private readonly server: ReturnType<typeof createServer>
  private version = 100

  private constructor(server: ReturnType<typeof createServer>, ca: string, client: { cert: string; key: string }) {
    this.server = server
    this.ca = ca
    this.client = client
    this.changes.setMaxListeners(0)
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => void this.answer(request, response))
  }

  static async start(): Promise<KubernetesApi> {
    const authority = await createAuthority()
    const { cert, key } = await authority.issue('kube-apiserver', ['127.0.0.1', 'localhost', 'api.cluster.test'])
    const server = createServer({ cert, key, ca: authority.ca, requestCert: true, rejectUnauthorized: false })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new KubernetesApi(server, authority.ca, await authority.issue('somebody'))
  }

  async stop(): Promise<void> {
    for (const container of this.running.values()) container.kill()
    this.server.close()
    this.server.closeAllConnections()
    await once(this.server, 'close')
  }

  /** Puts an object there, as somebody else would. */
  put(object: ApiObject): ApiObject {
    const stored = { ...object, metadata: { uid: randomUUID(), ...object.metadata, resourceVersion: this.next() } }
    this.objects.set(this.keyOf(stored), stored)
    this.changes.emit('change', 'MODIFIED', stored)
    return stored
  }

  find(kind: string, name?: string): ApiObject | undefined {
    return this.all(kind).find(({ metadata }) => name === undefined || metadata.name === name)
  }

  all(kind: string): ApiObject[] {
    return [...this.objects.values()].filter((object) => object.kind === kind)
  }

  /** The log of a pod that was put there. */
  setLog(namespace: string, pod: string, container: string, lines: readonly string[]): void {
    const log = new ContainerLog()
    for (const line of lines) log.add(line)
    log.close()
    this.logs.set(`${namespace}/${pod}/${container}`, log)
  }

  private next(): string {
    return String(++this.version)
  }

  private keyOf({ apiVersion, kind, metadata: { namespace = 'default', name } }: ApiObject): string {
    return `${apiVersion} ${kind} ${namespace} ${name}`
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.url)
    const text = await readText(request)
    const call: ApiCall = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      contentType: request.headers['content-type'],
      body: text === '' ? null : (JSON.parse(text) as Json),
    }
    this.calls.push(call)
    const fault = this.fault(call)
    if (fault?.hang) return
    try {
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
      const isKnown = token === undefined ? (request.socket as TLSSocket).authorized : this.tokens.has(token)
      if (!isKnown) throw new StatusError(401, 'Unauthorized')
      if (fault?.status !== undefined) {
        if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter)
        throw new StatusError(fault.status, fault.message ?? 'refused by the test')
      }
      const answer = this.result(call)
      if (Symbol.asyncIterator in answer) await stream(response, answer, fault?.cut)
      else send(response, call.method === 'POST' ? 201 : 200, answer)
    } catch (error) {
      const status = error instanceof StatusError ? error.status : 500
      const message = error instanceof Error ? error.message : String(error)
      send(response, status, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code: status })
    }
  }

  private result(call: ApiCall): object | AsyncIterable<string> {
    const { method, path, query } = call
    if (path === '/apis') return this.groups()
    const [, core, grouped, rest = ''] = /^\/(?:api\/(v1)|apis\/([^/]+\/[^/]+))(\/.*)?$/.exec(path) ?? []
    const apiVersion = core ?? grouped ?? ''
    const kinds = KINDS[apiVersion]
    if (!kinds) throw new StatusError(404, 'the server could not find the requested resource')
    if (rest === '') {
      const resources = kinds.map(([name, kind, namespaced]) => ({
        name,
        singularName: '',
        kind,
        namespaced,
        verbs: [],
      }))
      return { kind: 'APIResourceList', groupVersion: apiVersion, resources }
    }
    const [, namespace, plural, name, part] =
      /^(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(rest) ?? []
    const [, kind = '', namespaced] = kinds.find(([each]) => each === plural) ?? []
    if (kind === '' || (method !== 'GET' && namespaced !== (namespace !== undefined))) {
      throw new StatusError(404, 'the server could not find the requested resource')
    }
    const place: Place = {
      apiVersion,
      kind,
      plural: plural ?? '',
      namespace: decodeURIComponent(namespace ?? 'default'),
    }
    if (name === undefined) {
      if (method === 'POST') return this.create(place, call.body)
      if (method !== 'GET')
        throw new StatusError(405, 'the server does not allow this method on the requested resource')
      return query.watch === 'true' ? this.watch(place, query) : this.list(place, query)
    }
    const object = this.existing(place, decodeURIComponent(name))
    if (part === 'log') return this.readLog(object, query)
    if (method === 'PATCH') return this.patch(place, object, part, call)
    if (method === 'DELETE') return this.remove(object, call.body)
    return object
  }

  private groups(): object {
    const groups = Object.keys(KINDS).filter((version) => version.includes('/'))
    return {
      kind: 'APIGroupList',
      groups: groups.map((groupVersion) => ({ name: groupVersion.split('/')[0], preferredVersion: { groupVersion } })),
    }
  }

  private existing({ apiVersion, kind, plural, namespace }: Place, name: string): ApiObject {
    const found = this.objects.get(this.keyOf({ apiVersion, kind, metadata: { namespace, name } }))
    if (found) return found
    throw new StatusError(404, `${plural} "${name}" not found`)
  }

  private matching({ apiVersion, kind, namespace }: Place, query: Record<string, string>): ApiObject[] {
    const namespaced = KINDS[apiVersion]?.find(([, each]) => each === kind)?.[2] === true
    return [...this.objects.values()].filter(
      (object) =>
        object.apiVersion === apiVersion &&
        object.kind === kind &&
        (!namespaced || (object.metadata.namespace ?? 'default') === namespace) &&
        selects(query.labelSelector, (path) => object.metadata.labels?.[path]) &&
        selects(query.fieldSelector, (path) => valueAt(object, path)),
    )
  }

  private list(place: Place, query: Record<string, string>): object {
    if (query.continue !== undefined && this.expirePages) {
      this.expirePages = false
      throw new StatusError(410, 'The provided continue parameter is too old')
    }
    const all = this.matching(place, query)
    const from = Number(query.continue ?? 0)
    const to = query.limit === undefined ? all.length : from + Number(query.limit)
    // as in the real thing, items of a list don't repeat what they are
    const items = all.slice(from, to).map(({ apiVersion: _apiVersion, kind: _kind, ...item }) => item)
    const next = to < all.length ? { continue: String(to) } : {}
    const metadata = { resourceVersion: String(this.version), ...next }
    return { apiVersion: place.apiVersion, kind: `${place.kind}List`, metadata, items }
  }

  private async *watch(place: Place, query: Record<string, string>): AsyncGenerator<string> {
    const stop = new AbortController()
    const changes = on(this.changes, 'change', { signal: stop.signal })
    try {
      for (const object of this.matching(place, query)) {
        if (Number(object.metadata.resourceVersion) > Number(query.resourceVersion)) {
          yield JSON.stringify({ type: 'ADDED', object })
        }
      }
      for await (const [type, object] of changes as AsyncIterable<[string, ApiObject]>) {
        const isOurs =
          object.kind === place.kind && selects(query.labelSelector, (key) => object.metadata.labels?.[key])
        if (isOurs) yield JSON.stringify({ type, object })
      }
    } finally {
      stop.abort()
    }
  }

  private create(place: Place, body: Json): ApiObject {
    const object = body as unknown as ApiObject
    const { apiVersion, kind, namespace } = place
    if (object.apiVersion !== apiVersion || object.kind !== kind) throw new StatusError(400, `this is no ${kind}`)
    const { name } = object.metadata
    if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name)) throw new StatusError(422, `${kind} "${name}" is invalid`)
    const placed = { ...object, metadata: { ...object.metadata, namespace } }
    if (this.objects.has(this.keyOf(placed))) throw new StatusError(409, `${place.plural} "${name}" already exists`)
    if (kind === 'Secret' && JSON.stringify(body).length > 1.5 * 1024 * 1024) throw new StatusError(413, 'too large')
    if (kind === 'Job') checkJob(placed)
    const stored = this.put(placed)
    if (kind === 'Job') this.createPod(stored)
    if (kind === 'Secret') for (const pod of this.all('Pod')) this.startPod(pod)
    return stored
  }

  private createPod(job: ApiObject): void {
    const { template } = job.spec
    const { name, uid = '' } = job.metadata
    const ownerReferences = [{ uid }]
    const metadata = {
      name: `${name}-x1`,
      namespace: job.metadata.namespace ?? '',
      labels: template.metadata.labels,
      ownerReferences,
    }
    const waiting = { state: { waiting: { reason: 'ContainerCreating' } } }
    const status = { phase: 'Pending', containerStatuses: [waiting] }
    this.startPod(this.put({ apiVersion: 'v1', kind: 'Pod', metadata, spec: template.spec, status }))
  }

  /** Runs the container of a pod once the Secrets that it mounts are there. */
  private startPod(pod: ApiObject): void {
    const [container] = pod.spec.containers
    const { name, namespace = '' } = pod.metadata
    if (this.running.has(name) || pod.status?.phase !== 'Pending') return
    if (this.podFate) {
      this.podFate(pod)
      return
    }
    const files: Record<string, Record<string, string>> = {}
    for (const { name: volume, secret } of pod.spec.volumes ?? []) {
      const found = secret && this.find('Secret', secret.secretName)
      if (secret && !found) return
      if (found) files[volume] = found.stringData
    }
    const started = new RunningContainer(container, files)
    this.running.set(name, started)
    this.logs.set(`${namespace}/${name}/${container.name}`, started.log)
    const set = (phase: string, state: object): void => {
      if (this.find('Pod', name)) this.put({ ...pod, status: { phase, containerStatuses: [{ state }] } })
    }
    set('Running', { running: {} })
    const end = async (): Promise<void> => {
      const exitCode = await started.ended
      const reason = exitCode === 0 ? 'Completed' : exitCode === 137 ? 'OOMKilled' : 'Error'
      set(exitCode === 0 ? 'Succeeded' : 'Failed', { terminated: { exitCode, reason } })
    }
    void end()
  }

  /** Ends the process of a pod as a node without memory does. */
  killPod(name: string): void {
    this.running.get(name)?.kill()
  }

  private patch(place: Place, object: ApiObject, part: string | undefined, { contentType, body }: ApiCall): object {
    const target = JSON.parse(JSON.stringify(object)) as Json
    const apply: Record<string, (to: Json, patch: Json) => Json> = {
      'application/merge-patch+json': mergePatch,
      'application/json-patch+json': jsonPatch,
      ...(place.apiVersion !== 'example.com/v1' && { 'application/strategic-merge-patch+json': strategicPatch }),
    }
    const how = apply[contentType ?? '']
    if (!how)
      throw new StatusError(
        415,
        `the body of the request was in an unknown format - accepted media types include: ${Object.keys(apply).join(', ')}`,
      )
    if (part === 'scale') {
      const scaled = how({ spec: { replicas: object.spec.replicas } }, body) as { spec: { replicas: number } }
      if (!Number.isInteger(scaled.spec.replicas)) throw new StatusError(422, 'spec.replicas: Invalid value')
      this.put({ ...object, spec: { ...object.spec, replicas: scaled.spec.replicas } })
      return { kind: 'Scale', apiVersion: 'autoscaling/v1', metadata: object.metadata, spec: scaled.spec }
    }
    let patched: ApiObject
    try {
      patched = how(target, body) as unknown as ApiObject
    } catch (error) {
      throw new StatusError(422, `the server rejected our request: ${String(error)}`)
    }
    const given = (body as { metadata?: { resourceVersion?: string } } | null)?.metadata?.resourceVersion
    if (given !== undefined && given !== object.metadata.resourceVersion) {
      throw new StatusError(
        409,
        `Operation cannot be fulfilled on ${place.plural} "${object.metadata.name}": the object has been modified`,
      )
    }
    if (patched.metadata.name !== object.metadata.name) throw new StatusError(422, 'metadata.name: field is immutable')
    return this.put(patched)
  }

  private remove(object: ApiObject, body: Json): object {
    const options = body as { propagationPolicy?: string } | null
    this.objects.delete(this.keyOf(object))
    this.changes.emit('change', 'DELETED', object)
    this.running.get(object.metadata.name)?.kill()
    if (options?.propagationPolicy === 'Background') {
      for (const each of this.objects.values()) {
        if (each.metadata.ownerReferences?.some(({ uid }) => uid === object.metadata.uid)) this.remove(each, body)
      }
    }
    return { kind: 'Status', apiVersion: 'v1', status: 'Success' }
  }

  private readLog(pod: ApiObject, query: Record<string, string>): AsyncIterable<string> {
    const { name, namespace = 'default' } = pod.metadata
    const names: string[] = pod.spec.containers.map((each: { name: string }) => each.name)
    const container = query.container ?? (names.length === 1 ? names[0] : undefined)
    if (container === undefined) {
      throw new StatusError(
        400,
        `a container name must be specified for pod ${name}, choose one of: [${names.join(' ')}]`,
      )
    }
    if (!names.includes(container)) throw new StatusError(400, `container ${container} is not valid for pod ${name}`)
    const log = this.logs.get(`${namespace}/${name}/${container}`)
    if (!log)
      throw new StatusError(400, `container "${container}" in pod "${name}" is waiting to start: ContainerCreating`)
    return logLines(log, query)
  }
}

interface Place {
  apiVersion: string
  kind: string
  plural: string
  namespace: string
}

/** Lines as they come; the connection breaks after `cut` of them, in the middle of the next. */
async function stream(response: ServerResponse, lines: AsyncIterable<string>, cut = Infinity): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/plain' })
  response.flushHeaders()
  let count = 0
  for await (const line of lines) {
    if (response.destroyed) return
    if (count++ >= cut) {
      response.write(line.slice(0, line.length / 2), () => response.destroy())
      return
    }
    response.write(`${line}\n`)
  }
  response.end()
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
