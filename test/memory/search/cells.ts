import { embedDocument } from '../../../src/memory/embedder/hash.ts'
import type { CellDocument, MemoryCells, SearchAnswer, SearchQuery } from '../../../src/memory/search/types.ts'
import type { WorkspaceIndex } from '../../../src/memory/search/workspace-index.ts'

/** Memory ids that sort by their number. */
export const memoryId = (number: number): string => `mem_${String(number).padStart(8, '0')}`

/** A Memory of these Cells, with hashed vectors. Its number also tells its time of creation. */
export function memoryOf(number: number, texts: readonly string[], more: Partial<CellDocument> = {}): MemoryCells {
  const cells = texts.map((text, seq) => ({
    cellNo: number * 1_000 + seq + 1,
    cellId: `cell_${number}_${seq}`,
    memoryId: memoryId(number),
    seq,
    text,
    collectionId: null,
    agentId: 'agent_ada',
    createdAt: number,
    vector: embedDocument(text),
    ...more,
  }))
  return { memoryId: memoryId(number), cells }
}

export function search(index: WorkspaceIndex, text: string, more: Partial<SearchQuery> = {}): Promise<SearchAnswer> {
  return index.search({ text, mode: 'hybrid', vector: 'hash', k: 5, fusionWeight: 0.15, includeCells: false, ...more })
}

export const found = ({ hits }: SearchAnswer): string[] => hits.map((hit) => hit.memoryId)
