import type { Seams } from './seams.ts'
import { findFirstCells } from './store/cells.ts'
import type { Cell } from './store/content/bodies.ts'

/** The first Cell of each of these Memories that has one, with its text; without those whose text is lost, if told so. */
export async function readFirstCells(
  { metadata, bodies }: Seams,
  memoryIds: readonly string[],
  lost?: 'refuse' | 'skip',
): Promise<Map<string, Cell>> {
  const rows = await findFirstCells(metadata, memoryIds)
  return new Map((await bodies.texts(rows, lost)).map((cell) => [cell.memory_id, cell]))
}
