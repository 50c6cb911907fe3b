import { canonicalJson } from '../base/canonical-json.ts'
import type { WakeCondition, WakeType } from './model/run.ts'

/** Something happened that runs may wait for. */
export interface Signal {
  /** Wakes each run once. */
  id: string
  type: WakeType
  reference?: string
  payload?: Record<string, unknown>
}

/** Whether a signal ends the wait: parts of the condition that are not set match anything. Contract: kernel-1.md 6.2. */
export function matches(
  { type, wakeAt, reference, predicate = {} }: WakeCondition,
  signal: Signal,
  now: number,
): boolean {
  if (type !== signal.type) return false
  if (wakeAt !== undefined && Date.parse(wakeAt) > now) return false
  if (reference !== undefined && reference !== signal.reference) return false
  const payload = signal.payload ?? {}
  return Object.entries(predicate).every(
    ([key, value]) => Object.hasOwn(payload, key) && canonicalJson(value) === canonicalJson(payload[key]),
  )
}
