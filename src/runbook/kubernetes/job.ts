import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { backOff } from '../../base/back-off.ts'
import { errorText } from '../../base/errors.ts'
import { NodeError } from '../errors.ts'
import type { CodeJob, JobResult, JobRun } from '../ports.ts'
import { KubernetesError, segment, type Api } from './api.ts'
import { jobManifest, secretManifest } from './job-manifest.ts'
import { JobLog, type JobEnd } from './job-log.ts'

/** A cancelled node has five seconds to end. Contract: runbook.md 4.8. */
const REMOVAL_MS = 4500
const MAX_FAILURES = 6
const reconnect = (failures: number): number => backOff(failures + 1, 200, 5000)

const created = z.looseObject({ metadata: z.looseObject({ uid: z.string() }) })

const containerStatus = z.looseObject({
  state: z.looseObject({
    waiting: z.looseObject({ reason: z.string().optional(), message: z.string().optional() }).optional(),
    running: z.looseObject({}).optional(),
    terminated: z.looseObject({ exitCode: z.number(), reason: z.string().optional() }).optional(),
  }),
})
const pod = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  status: z.looseObject({
    phase: z.string().optional(),
    reason: z.string().optional(),
    message: z.string().optional(),
    containerStatuses: z.array(containerStatus).optional(),
  }),
})
const podList = z.looseObject({ items: z.array(pod), metadata: z.looseObject({ resourceVersion: z.string() }) })
const podEvent = z.looseObject({ type: z.string(), object: pod })

type Pod = z.output<typeof pod>

/** Where the pods of one job are found. */
interface Place {
  readonly api: Api
  readonly pods: string
  readonly labelSelector: string
  readonly signal: AbortSignal
}

/**
 * Runs code as a Job without service-account token. Code and inputs go into a Secret that the Job owns; the result comes
 * out through the log. Contract: runbook.md 6.7.
 * @throws KubernetesError, NodeError
 */
export async function runJob(api: Api, job: CodeJob, run: JobRun): Promise<JobResult> {
  const { signal } = run
  const namespace = segment(api.namespace)
  const [name, marker] = [`mem-code-${randomUUID()}`, `mem-${randomBytes(16).toString('hex')}`]
  const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`
  const secret = secretManifest(job, name)
  let isRefused = false
  try {
    const manifest = jobManifest(job, { name, marker, timeoutMs: run.timeoutMs })
    const { metadata } = await api.json(jobs, created, { method: 'POST', body: manifest, signal }).catch((error) => {
      isRefused = error instanceof KubernetesError
      throw error
    })
    const body = { ...secret, metadata: { ...secret.metadata, ownerReferences: [owner(name, metadata.uid)] } }
    await api.text(`/api/v1/namespaces/${namespace}/secrets`, { method: 'POST', body, signal })
    const pods = `/api/v1/namespaces/${namespace}/pods`
    const log = new JobLog(marker, (line) => run.onLog?.(line))
    const end = await follow({ api, pods, labelSelector: `mem/job=${name}`, signal }, log)
    return { ...end, logs: log.tail }
  } finally {
    if (!isRefused)
      await remove(api, `${jobs}/${name}`, (reason) =>
        run.onWarning?.(`the job ${namespace}/${name} could not be removed, the cluster will do it: ${reason}`),
      )
  }
}

/** Objects that a Job owns go with it. */
const owner = (name: string, uid: string): object => ({ apiVersion: 'batch/v1', kind: 'Job', name, uid })

/** Reads the log to its end, over as many streams as it takes. */
async function follow(place: Place, log: JobLog): Promise<JobEnd> {
  const { api, pods, signal } = place
  const { metadata } = await started(place)
  const path = `${pods}/${metadata.name}`
  let final: JobEnd | undefined
  for (let failures = 0; failures < MAX_FAILURES;) {
    const query = { container: 'code', follow: final === undefined, timestamps: true, sinceTime: log.since }
    const [take, before] = [log.reader(), log.received]
    const isWhole = await passing(async () => {
      for await (const line of api.lines(`${path}/log`, { query, signal })) take(line)
      return true
    })
    signal.throwIfAborted()
    const end = log.end ?? (isWhole ? final : undefined)
    if (end) return end
    const now = await passing(async () => ({ final: ended(await api.json(path, pod, { signal })) }))
    if (now) final = now.final
    // the stream of a job that is silent breaks too
    const isFailure = !now || (!isWhole && final !== undefined)
    failures = isFailure && log.received === before ? failures + 1 : 0
    if (!isWhole || !final) await wait(reconnect(failures), undefined, { signal })
  }
  throw new NodeError('network_error', 'the log of the job breaks off')
}

/** Undefined where the work fails in a way that passes: a broken connection, a server that restarts, an old list (410). */
async function passing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    const passes =
      error instanceof KubernetesError
        ? error.status === 400 || error.status === 410 || error.status >= 500
        : error instanceof NodeError && error.code === 'network_error'
    if (passes) return undefined
    throw error
  }
}

/** How the container ended without telling, such as for want of memory. */
function ended({ status }: Pod): JobEnd | undefined {
  const terminated = status.containerStatuses?.[0]?.state.terminated
  if (terminated) return terminated
  if (status.phase === 'Failed') throw failed(`its pod failed: ${status.message ?? status.reason ?? 'no reason given'}`)
  return undefined
}

/** Waits for the pod whose container runs or has run. @throws NodeError job_failed for one that never will */
async function started({ api, pods, labelSelector, signal }: Place): Promise<Pod> {
  for (let idle = 0; ; idle++) {
    const { items, metadata } = await api.json(pods, podList, { query: { labelSelector }, signal })
    const query = { labelSelector, watch: true, resourceVersion: metadata.resourceVersion, timeoutSeconds: 240 }
    const found =
      items.find(hasStarted) ??
      (await passing(async () => {
        for await (const line of api.lines(pods, { query, signal })) {
          const { data: event } = podEvent.safeParse(JSON.parse(line))
          if (!event || event.type === 'ERROR') return undefined
          if (event.type === 'DELETED') throw failed('its pod was removed')
          if (hasStarted(event.object)) return event.object
        }
        return undefined
      }))
    if (found) return found
    await wait(reconnect(idle), undefined, { signal })
  }
}

function hasStarted(object: Pod): boolean {
  const { waiting, running } = object.status.containerStatuses?.[0]?.state ?? {}
  if (waiting?.reason !== undefined && NEVER.test(waiting.reason)) {
    throw failed(`its container does not start: ${waiting.reason}${waiting.message ? `: ${waiting.message}` : ''}`)
  }
  return running !== undefined || ended(object) !== undefined
}

const NEVER = /^(ImagePullBackOff|ErrImageNeverPull|InvalidImageName|CreateContainerConfigError|CreateContainerError)$/

const failed = (reason: string): NodeError => new NodeError('job_failed', `the job failed: ${reason}`)

/** Removal goes on when the node was cancelled; the pods and the Secret go with their owner. */
async function remove(api: Api, path: string, onFailure: (reason: string) => void): Promise<void> {
  const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' }
  try {
    await api.text(path, { method: 'DELETE', body, signal: AbortSignal.timeout(REMOVAL_MS) })
  } catch (error) {
    const isGone = error instanceof KubernetesError && error.status === 404
    if (!isGone) onFailure(errorText(error))
  }
}
