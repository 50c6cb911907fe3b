import { credentialAt, json, startRig, startUpstream, type RigOptions, type Script } from './support.ts'

/** Two providers of one model, the first before the second. */
export async function pair(first: Script, second: Script = json(), options: RigOptions = {}) {
  const upstreams = [await startUpstream(first), await startUpstream(second)] as const
  const credentials = upstreams.map((upstream, i) => credentialAt(i + 1, upstream, { priority: i }))
  return { upstreams, ...(await startRig({ credentials, ...options })) }
}

export const classes = ({ attempts }: { attempts: { class: string }[] }): string[] => attempts.map((each) => each.class)
