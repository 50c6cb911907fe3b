import * as z from 'zod'
import { toTimestamp, type Clock } from '../../base/clock.ts'
import { NodeError } from '../errors.ts'
import type { CodeJob, JobResult, JobRun, OrchestratorClient, Target } from '../ports.ts'
import { Api, KubernetesError, segment } from './api.ts'
import type { KubernetesOptions } from './connection.ts'
import { Discovery, type Resource } from './discovery.ts'
import { runJob } from './job.ts'
import { openTransport } from './transport.ts'

const TIMEOUT_MS = 30_000
const PAGE = 500
const MAX_EVENTS = 5000
/** Lines beyond are not asked for; the log of one container may be endless. */
const MAX_LOG_BYTES = 10 * 1024 * 1024

const PATCH_TYPES: Readonly<Record<string, string>> = {
  strategic: 'application/strategic-merge-patch+json',
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
}

const object = z.looseObject({})
const list = z.looseObject({
  items: z.array(object),
  metadata: z.looseObject({ continue: z.string().optional() }).optional(),
})
const pod = z.looseObject({
  metadata: z.looseObject({ annotations: z.record(z.string(), z.string()).optional() }),
  spec: z.looseObject({ containers: z.array(z.looseObject({ name: z.string() })) }),
})

type Place = Pick<Target, 'clusterId' | 'namespace'>

/** @throws NodeError config_invalid */
export async function openClient(options: KubernetesOptions, clock: Clock): Promise<OrchestratorClient> {
  const { timeoutMs = TIMEOUT_MS, image } = options
  return new KubernetesClient(new Api(await openTransport(options, timeoutMs), timeoutMs), clock, image)
}

type Asked<Name extends 'list' | 'logs' | 'scale' | 'patch' | 'delete'> = Parameters<OrchestratorClient[Name]>[0]

class KubernetesClient implements OrchestratorClient {
  readonly #api: Api
  readonly #discovery: Discovery
  readonly #clock: Clock
  /** For jobs that name none. */
  readonly #image: string | undefined

  constructor(api: Api, clock: Clock, image: string | undefined) {
    this.#api = api
    this.#discovery = new Discovery(api)
    this.#clock = clock
    this.#image = image
  }

  async get(target: Target, signal: AbortSignal): Promise<unknown> {
    return this.#api.json(await this.#pathOf(target, signal), object, { signal })
  }

  async list({ labelSelector, fieldSelector, limit, ...target }: Asked<'list'>, signal: AbortSignal): Promise<Listed> {
    const { path, resource } = await this.#collection(target, signal)
    const { kind, apiVersion } = resource
    const { items, truncated } = await pages(this.#api, path, { labelSelector, fieldSelector }, limit, signal)
    return { items: items.map((item) => ({ apiVersion, kind, ...item })), truncated }
  }

  async logs(
    { pod: name, container, tailLines, sinceSeconds, ...place }: Asked<'logs'>,
    signal: AbortSignal,
  ): ReturnType<OrchestratorClient['logs']> {
    const path = `/api/v1/namespaces/${this.#namespaceOf(place)}/pods/${segment(name)}`
    const chosen = container ?? defaultContainer(await this.#api.json(path, pod, { signal }))
    // one line more than wanted tells whether there are more
    const query = {
      container: chosen,
      tailLines: tailLines === undefined ? undefined : tailLines + 1,
      sinceSeconds,
      limitBytes: MAX_LOG_BYTES,
    }
    const text = await this.#api.text(`${path}/log`, { query, signal })
    const lines = text.split(/(?<=\n)/)
    const tooMany = tailLines !== undefined && lines.length > tailLines
    return {
      logs: tooMany ? lines.slice(-tailLines).join('') : text,
      ...(chosen !== undefined && { container: chosen }),
      truncated: tooMany || Buffer.byteLength(text) >= MAX_LOG_BYTES,
    }
  }

  async events(target: Target, signal: AbortSignal): Promise<readonly object[]> {
    const { kind, name } = target
    let namespace = this.#namespaceOf(target)
    let fieldSelector: string | undefined
    if (kind !== '') {
      const resource = await this.#discovery.find(kind, target.apiVersion, signal)
      if (!resource.namespaced) namespace = 'default'
      fieldSelector = `involvedObject.kind=${resource.kind},involvedObject.name=${segment(name)}`
    }
    const path = `/api/v1/namespaces/${namespace}/events`
    return (await pages(this.#api, path, { fieldSelector }, MAX_EVENTS, signal)).items
  }

  async restart(target: Target, signal: AbortSignal): Promise<void> {
    const annotations = { 'kubectl.kubernetes.io/restartedAt': toTimestamp(this.#clock.now()) }
    const body = { spec: { template: { metadata: { annotations } } } }
    await this.#patch(await this.#pathOf(target, signal), 'strategic', body, signal)
  }

  async scale({ replicas, ...target }: Asked<'scale'>, signal: AbortSignal): Promise<void> {
    await this.#patch(`${await this.#pathOf(target, signal)}/scale`, 'merge', { spec: { replicas } }, signal)
  }

  async patch({ patch: body, patchType, ...target }: Asked<'patch'>, signal: AbortSignal): Promise<unknown> {
    if (Array.isArray(body) !== (patchType === 'json')) {
      throw new NodeError('config_invalid', `a ${patchType} patch is ${patchType === 'json' ? 'a list' : 'a map'}`)
    }
    return this.#patch(await this.#pathOf(target, signal), patchType, body, signal)
  }

  async delete({ gracePeriodSeconds, ...target }: Asked<'delete'>, signal: AbortSignal): Promise<void> {
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background', gracePeriodSeconds }
    await this.#api.text(await this.#pathOf(target, signal), { method: 'DELETE', body, signal })
  }

  runJob(job: CodeJob, run: JobRun): Promise<JobResult> {
    return runJob(this.#api, this.#image === undefined ? job : { image: this.#image, ...job }, run)
  }

  #namespaceOf({ clusterId, namespace }: Place): string {
    if (clusterId !== '1') throw new NodeError('config_invalid', `this client knows one cluster, not "${clusterId}"`)
    return segment(namespace ?? this.#api.namespace)
  }

  async #collection(target: Target, signal: AbortSignal): Promise<{ path: string; resource: Resource }> {
    const namespace = this.#namespaceOf(target)
    const resource = await this.#discovery.find(target.kind, target.apiVersion, signal)
    const scope = resource.namespaced ? `/namespaces/${namespace}` : ''
    return { path: `${resource.prefix}${scope}/${resource.name}`, resource }
  }

  async #pathOf(target: Target, signal: AbortSignal): Promise<string> {
    const name = segment(target.name)
    return `${(await this.#collection(target, signal)).path}/${name}`
  }

  #patch(path: string, type: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    return this.#api.json(path, object, { method: 'PATCH', body, contentType: PATCH_TYPES[type] ?? type, signal })
  }
}

interface Listed {
  items: readonly object[]
  truncated: boolean
}

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

const defaultContainer = ({ metadata: { annotations }, spec: { containers } }: z.output<typeof pod>) =>
  annotations?.[DEFAULT_CONTAINER] ?? containers[0]?.name

/** At most `limit` objects, page by page; a list that the server has forgotten meanwhile (410) begins again, once. */
async function pages(
  api: Api,
  path: string,
  selectors: Readonly<Record<string, string | undefined>>,
  limit: number,
  signal: AbortSignal,
): Promise<Listed> {
  let items: object[] = []
  let next: string | undefined
  let expired = false
  for (;;) {
    const query = { ...selectors, limit: Math.min(PAGE, limit - items.length), continue: next }
    try {
      const page = await api.json(path, list, { query, signal })
      items.push(...page.items)
      next = page.metadata?.continue
    } catch (error) {
      if (!(error instanceof KubernetesError) || error.status !== 410 || expired) throw error
      expired = true
      items = []
      next = undefined
      continue
    }
    if (!next || items.length >= limit) return { items, truncated: Boolean(next) }
  }
}
