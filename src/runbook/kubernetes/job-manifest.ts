import { NodeError } from '../errors.ts'
import type { CodeJob } from '../ports.ts'
import { DRIVER, MAX_RESULT_BYTES } from './job-driver.ts'

const IMAGE = 'docker.io/library/python:3.13.1-slim-bookworm'
/** What a Secret holds. */
const MAX_FILES_BYTES = 1024 * 1024
const FILES = '/mem/job'
const WORK = '/tmp'
const USER = 65_532
/** For the removal by the cluster, when this process is gone by then. */
const SPARE_S = 60
const DEFAULT_LIMIT_S = 86_400

/** The files of a job, in a Secret because inputs may be secret. @throws NodeError config_invalid */
export function secretManifest({ code, input, requirements }: CodeJob, name: string) {
  const files = { 'run.py': DRIVER, 'code.py': code, 'input.json': input, 'requirements.txt': requirements.join('\n') }
  const size = Object.values(files).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (size > MAX_FILES_BYTES)
    throw new NodeError('config_invalid', `code and inputs have ${size} bytes, more than 1 MiB`)
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, labels: LABELS }, immutable: true, stringData: files }
}

const LABELS = { 'app.kubernetes.io/managed-by': 'mem' }

/** One pod, tried once, without privileges and without a token for the API server; it may write below /tmp. */
export function jobManifest(
  { cpu, memory, image = IMAGE }: CodeJob,
  { name, marker, timeoutMs }: { name: string; marker: string; timeoutMs: number | undefined },
): object {
  const amounts = { ...(cpu !== undefined && { cpu }), ...(memory !== undefined && { memory }) }
  const args = [marker, `${FILES}/code.py`, `${FILES}/requirements.txt`, `${WORK}/packages`, String(MAX_RESULT_BYTES)]
  const labels = { ...LABELS, 'mem/job': name }
  const container = {
    name: 'code',
    image,
    command: ['python3', '-u', `${FILES}/run.py`, ...args],
    workingDir: WORK,
    env: Object.entries({
      INPUT_FILE: `${FILES}/input.json`,
      OUTPUT_FILE: `${WORK}/output.json`,
      HOME: WORK,
    }).map(([key, value]) => ({ name: key, value })),
    resources: { limits: amounts, requests: amounts },
    volumeMounts: [
      { name: 'files', mountPath: FILES, readOnly: true },
      { name: 'work', mountPath: WORK },
    ],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  }
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, labels },
    spec: {
      backoffLimit: 0,
      activeDeadlineSeconds: timeoutMs === undefined ? DEFAULT_LIMIT_S : Math.ceil(timeoutMs / 1000) + SPARE_S,
      ttlSecondsAfterFinished: SPARE_S,
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: 'Never',
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 1,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: USER,
            runAsGroup: USER,
            fsGroup: USER,
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [container],
          volumes: [
            { name: 'files', secret: { secretName: name } },
            { name: 'work', emptyDir: {} },
          ],
        },
      },
    },
  }
}
