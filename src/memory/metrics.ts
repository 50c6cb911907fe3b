import type { Clock } from '../base/clock.ts'
import { figure, type Metric } from '../base/metrics.ts'
import type { IndexSizes } from './search/types.ts'
import type { Seams } from './seams.ts'
import { countOutbox, findBacklog } from './store/backlog.ts'

const SEAMS = ['ledger', 'graph', 'vector', 'content'] as const

/** What waits to be done, and what the search indexes hold. */
export function memoryMetrics(
  { metadata }: Seams,
  index: { sizes(): Record<string, IndexSizes> },
  clock: Clock,
): Metric[] {
  return [
    figure('gauge', 'mem_embed_queue_jobs', 'Cells that wait for a vector.', async () => [
      { value: (await findBacklog(metadata, clock.now())).jobs },
    ]),
    figure('gauge', 'mem_embed_queue_late_seconds', 'How long the oldest due job has waited.', async () => [
      { value: (await findBacklog(metadata, clock.now())).jobsLateMs / 1000 },
    ]),
    figure('gauge', 'mem_outbox_rows', 'Rows that have not reached their store yet.', async () => {
      const waiting = new Map((await countOutbox(metadata)).map(({ seam, n }) => [seam, n]))
      return SEAMS.map((seam) => ({ labels: { seam }, value: waiting.get(seam) ?? 0 }))
    }),
    figure('gauge', 'mem_search_indexes', 'Workspaces whose index is in memory, by thread.', () =>
      Object.entries(index.sizes()).map(([thread, { indexes }]) => ({ labels: { thread }, value: indexes })),
    ),
    figure('gauge', 'mem_search_index_cells', 'Cells in those indexes.', () =>
      Object.entries(index.sizes()).map(([thread, { cells }]) => ({ labels: { thread }, value: cells })),
    ),
  ]
}
