import { setTimeout as sleep } from 'node:timers/promises'

/** Waits, unless the signal ends that. */
export async function rest(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => {})
}
