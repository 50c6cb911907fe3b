export interface ApiObject {
  apiVersion: string
  kind: string
  metadata: {
    name: string
    namespace?: string
    uid?: string
    resourceVersion?: string
    labels?: Record<string, string>
    ownerReferences?: { uid: string }[]
  }
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever a kind has
  [field: string]: any
}

/** Plural, kind, scope and whether strategic patches are known, by group version. */
export const KINDS: Record<string, [name: string, kind: string, namespaced: boolean][]> = {
  v1: [
    ['pods', 'Pod', true],
    ['pods/log', 'Pod', true],
    ['secrets', 'Secret', true],
    ['configmaps', 'ConfigMap', true],
    ['events', 'Event', true],
    ['nodes', 'Node', false],
  ],
  'apps/v1': [
    ['deployments', 'Deployment', true],
    ['deployments/scale', 'Scale', true],
    ['statefulsets', 'StatefulSet', true],
    ['daemonsets', 'DaemonSet', true],
    ['replicasets', 'ReplicaSet', true],
  ],
  'batch/v1': [['jobs', 'Job', true]],
  'example.com/v1': [['widgets', 'Widget', true]],
}

/** What the server answers instead of an object. */
export class StatusError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** `a=b,c!=d`, and a bare key for one that is there. */
export const selects = (selector: string | undefined, valueOf: (key: string) => string | undefined): boolean =>
  (selector ?? '')
    .split(',')
    .filter((part) => part !== '')
    .every((part) => {
      const [, key = '', operator, wanted] = /^([^=!]+)(?:(!?=)=?(.*))?$/.exec(part) ?? []
      if (operator === undefined) return valueOf(key) !== undefined
      return (valueOf(key) === wanted) === (operator === '=')
    })

/** The text at a path as `spec.nodeName`. */
export function valueAt(object: ApiObject, path: string): string | undefined {
  let value: unknown = object
  for (const part of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[part]
  return typeof value === 'string' ? value : undefined
}

const QUANTITY = /^\d+(\.\d+)?(m|k|Ki|Mi|Gi|M|G)?$/

/** @throws StatusError for what the real server refuses */
export function checkJob({ metadata, spec }: ApiObject): void {
  const pod = spec?.template?.spec
  const refuse = (reason: string): never => {
    throw new StatusError(422, `Job.batch "${metadata.name}" is invalid: ${reason}`)
  }
  if (!['Never', 'OnFailure'].includes(pod?.restartPolicy)) refuse('spec.template.spec.restartPolicy')
  for (const { name, image, resources, volumeMounts } of pod.containers) {
    if (typeof name !== 'string' || typeof image !== 'string' || image === '') refuse('spec.template.spec.containers')
    for (const amount of Object.values<string>({ ...resources?.limits, ...resources?.requests })) {
      if (!QUANTITY.test(amount)) refuse(`resources: Invalid value: "${amount}"`)
    }
    for (const mount of volumeMounts ?? []) {
      if (!pod.volumes.some((volume: { name: string }) => volume.name === mount.name))
        refuse(`volumeMounts: ${mount.name}`)
    }
  }
  for (const value of Object.values<string>(spec.template.metadata?.labels ?? {})) {
    if (!/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(value)) refuse(`labels: Invalid value: "${value}"`)
  }
}
