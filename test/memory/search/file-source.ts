import { readFileSync } from 'node:fs'
import { embedDocument } from '../../../src/memory/embedder/hash.ts'
import type { CellSource, ChangeBatch } from '../../../src/memory/search/types.ts'

/** A Memory as it stands after change `seq`: its texts, one a Cell; none = forgotten. */
export interface FileChange {
  workspaceId: string
  memoryId: string
  seq: number
  cells: { cellNo: number; text: string }[]
}

/** A source over a file of changes, read again for each search, so that two threads see the same. */
export function openCellSource({ file }: { file: string }): CellSource {
  const readAll = (): FileChange[] => {
    const changes: FileChange[] = JSON.parse(readFileSync(file, 'utf8'))
    if (changes.some((change) => change.memoryId === 'poison')) throw new Error(`${file} cannot be read`)
    return changes
  }
  const read = (workspaceId: string): FileChange[] => readAll().filter((change) => change.workspaceId === workspaceId)
  return {
    async count(workspaceId) {
      return read(workspaceId).reduce((sum, { cells }) => sum + cells.length, 0)
    },
    async *changes(workspaceId, model, sinceSeq) {
      for (const { memoryId, seq, cells } of read(workspaceId)) {
        if (seq <= sinceSeq) continue
        const batch: ChangeBatch = { seq, memories: [{ memoryId, cells: [] }] }
        batch.memories[0]?.cells.push(
          ...cells.map(({ cellNo, text }, i) => ({
            cellNo,
            cellId: `cell_${cellNo}`,
            memoryId,
            seq: i,
            text,
            collectionId: null,
            agentId: 'agent_a',
            createdAt: seq,
            vector: model === 'none:' ? null : embedDocument(text),
          })),
        )
        yield batch
      }
    },
    has: async (cellNo) => readAll().some(({ cells }) => cells.some((cell) => cell.cellNo === cellNo)),
    version: () => undefined,
    async close() {},
  }
}
