const STOPS = ['SIGINT', 'SIGTERM'] as const

/** Runs `work` with a signal that the first SIGINT or SIGTERM aborts. */
export async function untilStopped<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  for (const name of STOPS) process.once(name, abort)
  try {
    return await work(controller.signal)
  } finally {
    for (const name of STOPS) process.off(name, abort)
  }
}
