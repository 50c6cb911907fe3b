import * as z from 'zod'
import { errorText } from '../../base/errors.ts'
import { KubernetesError, segment, type Api } from './api.ts'

/** A kind as the cluster serves it. */
export interface Resource {
  readonly kind: string
  readonly apiVersion: string
  /** `/api/v1`, `/apis/apps/v1`. */
  readonly prefix: string
  /** The plural in paths. */
  readonly name: string
  readonly namespaced: boolean
}

const resourceList = z.looseObject({
  resources: z.array(z.looseObject({ name: z.string(), kind: z.string(), namespaced: z.boolean() })),
})
const groupList = z.looseObject({
  groups: z.array(z.looseObject({ preferredVersion: z.looseObject({ groupVersion: z.string() }) })),
})

/** Finds the path of a kind by what the cluster tells of itself; answers are kept. */
export class Discovery {
  private readonly api: Api
  private readonly known = new Map<string, readonly Resource[]>()
  private groups: readonly string[] | undefined

  constructor(api: Api) {
    this.api = api
  }

  /**
   * A kind, upper and lower case alike; without `apiVersion` that of the core, else of the first group that has it in the
   * version it prefers. @throws KubernetesError 404
   */
  async find(kind: string, apiVersion: string | undefined, signal: AbortSignal): Promise<Resource> {
    const broken: string[] = []
    for (const version of apiVersion === undefined ? await this.versions(signal) : [apiVersion]) {
      try {
        const resources = this.known.get(version) ?? (await this.load(version, signal))
        const found = resources.find((each) => each.kind.toLowerCase() === kind.toLowerCase())
        if (found) return found
      } catch (error) {
        // an extension that is down must not hide the kinds of the others
        if (!(error instanceof KubernetesError) || error.status === 401 || error.status === 403) throw error
        broken.push(`${version}: ${errorText(error)}`)
      }
    }
    // it may be installed before the next call
    this.known.clear()
    this.groups = undefined
    const place = apiVersion ?? 'the cluster'
    const remark = broken.length > 0 ? ` (${broken.join('; ')})` : ''
    throw new KubernetesError(404, `${place} has no kind "${kind}"${remark}`)
  }

  private async versions(signal: AbortSignal): Promise<readonly string[]> {
    this.groups ??= (await this.api.json('/apis', groupList, { signal })).groups.map(
      ({ preferredVersion }) => preferredVersion.groupVersion,
    )
    return ['v1', ...this.groups]
  }

  private async load(apiVersion: string, signal: AbortSignal): Promise<readonly Resource[]> {
    const path = apiVersion.split('/').map(segment).join('/')
    const prefix = apiVersion.includes('/') ? `/apis/${path}` : `/api/${path}`
    const { resources } = await this.api.json(prefix, resourceList, { signal })
    const found = resources
      .filter(({ name }) => !name.includes('/')) // the others are parts of one, such as its log
      .map(({ kind, name, namespaced }) => ({ kind, name, namespaced, apiVersion, prefix }))
    this.known.set(apiVersion, found)
    return found
  }
}
