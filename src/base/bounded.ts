/** Runs `work` on every item, at most so many at a time; the first failure ends it, when what is under way has ended. */
export async function eachBounded<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const left = items.values()
  let failed = false
  const lane = async (): Promise<void> => {
    for (const item of left) {
      if (failed) return
      try {
        await work(item)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const lanes = Array.from({ length: Math.min(atOnce, items.length) }, lane)
  for (const outcome of await Promise.allSettled(lanes)) if (outcome.status === 'rejected') throw outcome.reason
}
