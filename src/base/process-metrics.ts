import { monitorEventLoopDelay } from 'node:perf_hooks'
import { figure, type Metric } from './metrics.ts'
import { version } from './version.ts'

/** What the process takes of the machine, and how long its event loop was held up since the last scrape. */
export function processMetrics(): Metric[] {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  const start = (performance.timeOrigin / 1000).toFixed(3)
  const heldUp = (): { labels: { quantile: string }; value: number }[] => {
    const values = [0.5, 0.99, 1].map((quantile) => ({
      labels: { quantile: String(quantile) },
      value: (quantile === 1 ? delay.max : delay.percentile(quantile * 100)) / 1e9,
    }))
    delay.reset()
    return values
  }
  return [
    figure('gauge', 'mem_info', 'The version that runs.', () => [{ labels: { version }, value: 1 }]),
    figure('counter', 'process_cpu_seconds_total', 'CPU time used.', () => {
      const { user, system } = process.cpuUsage()
      return [{ value: (user + system) / 1e6 }]
    }),
    figure('gauge', 'process_start_time_seconds', 'When it began, since the epoch.', () => [{ value: Number(start) }]),
    figure('gauge', 'process_resident_memory_bytes', 'Memory held.', () => [{ value: process.memoryUsage.rss() }]),
    figure('gauge', 'nodejs_heap_used_bytes', 'Memory of JavaScript objects.', () => [
      { value: process.memoryUsage().heapUsed },
    ]),
    figure('gauge', 'nodejs_eventloop_delay_seconds', 'How late timers were since the last scrape.', heldUp),
  ]
}
