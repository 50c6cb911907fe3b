import { readFileSync } from 'node:fs'
import os from 'node:os'

export interface Latencies {
  rate: number
  p50: number
  p95: number
  p99: number
  max: number
  count: number
}

/** Runs `action` from so many clients side by side until time is up; the rate is per second, the rest milliseconds. */
export async function hammer(
  clients: number,
  seconds: number,
  action: (client: number) => Promise<void>,
): Promise<Latencies> {
  const times: number[] = []
  const start = performance.now()
  const end = start + seconds * 1000
  const client = async (number: number): Promise<void> => {
    for (let before = performance.now(); before < end; before = performance.now()) {
      await action(number)
      times.push(performance.now() - before)
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  return { ...quantiles(times), rate: round((1000 * times.length) / (performance.now() - start)) }
}

/** Of milliseconds. */
export function quantiles(times: number[]): Omit<Latencies, 'rate'> {
  const sorted = Float64Array.from(times).sort()
  const at = (share: number): number =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN)
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1), count: sorted.length }
}

export const median = (values: number[]): number => quantiles(values).p50

export const round = (value: number): number => Number(value.toPrecision(3))

/** Seconds of CPU that a process has used, all its threads together. Linux only. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** MiB of memory that a process has. Linux only. */
export function residentMiB(pid: number): number {
  const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Math.round(Number(kib) / 1024)
}

/** One line that says what the figures were measured on. */
export function machine(): string {
  const cpu = os.cpus()[0]?.model ?? 'unknown processor'
  const memory = Math.round(os.totalmem() / 2 ** 30)
  return `${cpu}, ${os.cpus().length} cores, ${memory} GiB, Node ${process.versions.node}, load ${os.loadavg()[0]?.toFixed(1)}`
}

/** Rows of one kind, as a Markdown table. */
export function printTable(rows: readonly Record<string, string | number>[]): void {
  const columns = Object.keys(rows[0] ?? {})
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`
  console.log(line(columns))
  console.log(line(columns.map(() => '---')))
  for (const row of rows) console.log(line(columns.map((column) => row[column] ?? '')))
  console.log()
}
