import { MemoryError } from './errors.ts'

/** `limits.*` of the configuration; 0 = no limit. */
export interface Limits {
  out_edges: number
  batch_edges: number
  memories_per_workspace: number
  workspaces: number
}

/** @throws quota_exceeded 429 when one more would pass the limit; nothing is counted while there is none. */
export async function refuseBeyond(limits: Limits, limit: keyof Limits, count: () => Promise<number>): Promise<void> {
  const value = limits[limit]
  if (value > 0 && (await count()) >= value) throw quotaExceeded(limit, value)
}

export const quotaExceeded = (limit: keyof Limits, value: number): MemoryError =>
  new MemoryError('quota_exceeded', `the limit limits.${limit} = ${value} is reached`, {
    limit: `limits.${limit}`,
    value,
  })
