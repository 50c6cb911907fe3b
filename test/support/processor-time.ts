/** Processor milliseconds of this process for `work`: unlike the clock, it doesn't count what runs beside the tests. */
export function processorTime(work: () => void): number {
  const before = process.cpuUsage()
  work()
  return process.cpuUsage(before).user / 1000
}
