import type { Budget } from '../model.ts'
import { DAY } from '../store/aggregates.ts'

/** A span of time that a budget is for, epoch ms; the end is not included. */
export interface Window {
  period: Budget['window']
  startsAt: number
  endsAt: number
}

/** The last moment that a date can tell: of a budget that never begins anew. */
export const FOREVER = 8.64e15

/** The UTC calendar window around a time; weeks begin on Monday. Contract: gateway.md 2.3. */
export function windowAt(period: Budget['window'], now: number): Window {
  if (period === 'total') return { period, startsAt: 0, endsAt: FOREVER }
  const day = Math.floor(now / DAY)
  if (period === 'day') return { period, startsAt: day * DAY, endsAt: (day + 1) * DAY }
  if (period === 'week') {
    // The first day of the epoch was a Thursday.
    const monday = day - ((day + 3) % 7)
    return { period, startsAt: monday * DAY, endsAt: (monday + 7) * DAY }
  }
  const date = new Date(now)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { period, startsAt: Date.UTC(year, month), endsAt: Date.UTC(year, month + 1) }
}
