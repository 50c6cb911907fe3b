import { UNIT_MS } from '../../base/duration.ts'

const WHOLE = /^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/
const PART = /(\d+(?:\.\d+)?)(ms|[smhd])/g

/** Milliseconds of a duration: a number of seconds, or text of `ms s m h d` parts such as "1m30s". Contract: runbook.md 2.2. */
export function parseDuration(value: string | number): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? value * 1000 : undefined
  if (!WHOLE.test(value)) return undefined
  let total = 0
  for (const [, amount, unit = ''] of value.matchAll(PART)) total += Number(amount) * (UNIT_MS[unit] ?? 0)
  return total
}
