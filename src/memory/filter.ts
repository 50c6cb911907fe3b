import type { SearchFilter } from './search/types.ts'
import type { MemoryRow } from './store/memories.ts'

/** The filter applied to a record, where there is no index to push it down to. */
export const passes = (row: MemoryRow, filter: SearchFilter): boolean =>
  (filter.collectionId === undefined || row.collection_id === filter.collectionId) &&
  (filter.agentIn?.has(row.written_by_agent_id) ?? true) &&
  !(filter.agentNotIn?.has(row.written_by_agent_id) ?? false) &&
  (filter.after === undefined || row.created_at >= filter.after) &&
  (filter.before === undefined || row.created_at < filter.before) &&
  (filter.memoryIds?.has(row.memory_id) ?? true)
