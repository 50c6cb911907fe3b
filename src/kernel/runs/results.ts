import type { PendingResult, Run } from '../model/run.ts'

const KEPT = 32
const MAX_BYTES = 16 * 1024

/** The run with a result that its next turn sees. Only the newest are kept, each of 16 KiB of JSON at most. */
export const addResult = (run: Run, result: PendingResult): Run => ({
  ...run,
  pendingResults: [...run.pendingResults, cut(result)].slice(-KEPT),
})

/** What is too long stands as the beginning of its JSON. */
function cut(result: PendingResult): PendingResult {
  const json = Buffer.from(JSON.stringify(result))
  if (json.length <= MAX_BYTES) return result
  const { kind, id, at, status } = result
  return { kind, id, at, status, truncated: true, beginning: json.toString('utf8', 0, MAX_BYTES / 2) }
}
