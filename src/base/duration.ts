export const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** Node's timers end here; a longer one would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Milliseconds of `30s`, `5m`, or a number of seconds; undefined when it is none, or longer than a timer runs. */
export function parseDuration(value: string | number): number | undefined {
  const ms = parseLifetime(value)
  return ms !== undefined && ms <= LONGEST_TIMER_MS ? ms : undefined
}

/** As `parseDuration`, of any length: for what lasts until a time, and no timer waits for. */
export function parseLifetime(value: string | number): number | undefined {
  const [, amount, unit = 's'] = /^(\d{1,15}(?:\.\d+)?)(ms|s|m|h)?$/.exec(String(value).trim()) ?? []
  return amount === undefined ? undefined : Math.round(Number(amount) * (UNIT_MS[unit] ?? 1000))
}

/** The shortest exact way to write it, which {@link parseDuration} reads back. */
export function formatDuration(ms: number): string {
  if (ms > 0 && ms % 3_600_000 === 0) return `${ms / 3_600_000}h`
  return ms > 0 && ms % 60_000 === 0 ? `${ms / 60_000}m` : `${ms / 1000}s`
}
