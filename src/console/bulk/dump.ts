import { decodeCursor } from '../../base/pages.ts'
import { invalidInput, notFound } from '../../memory/errors.ts'
import type { Memory } from '../../memory/model.ts'
import { findCollection } from '../../memory/store/collections.ts'
import type { PageRequest } from '../pages/page.ts'
import type { Console } from '../settings.ts'

const BATCH = 20

export interface Dump {
  headers: Record<string, string>
  lines: (signal: AbortSignal) => AsyncGenerator<string>
}

/** Every live Memory of a workspace as JSONL, newest first, as `import` reads it. @throws invalid_input 400, not_found 404. */
export async function dump({ service }: Console, { query }: PageRequest): Promise<Dump> {
  const ws = query('ws') ?? query('workspace_id')
  if (ws === undefined) throw invalidInput('ws is missing: say which workspace, as in ?ws=ws_…', 'ws')
  const workspace = await service.requireWorkspace(ws)
  const collection = query('collection')
  const db = service.seams.metadata
  if (collection !== undefined && !(await findCollection(db, workspace.id, collection))) {
    throw notFound('collection', collection)
  }
  const names = new Map<string, string | undefined>()
  const nameOf = async (id: string): Promise<string | undefined> => {
    if (!names.has(id)) names.set(id, (await findCollection(db, workspace.id, id))?.name)
    return names.get(id)
  }
  return {
    headers: {
      'Content-Type': 'application/x-ndjson',
      'Content-Disposition': `attachment; filename="${workspace.id}-dump.jsonl"`,
    },
    async *lines(signal) {
      let before: readonly [number, string] | undefined
      do {
        const page = await service.memories.list(workspace, collection, true, BATCH, before)
        for (const memory of page.items) {
          if (signal.aborted) return
          const name = memory.collection_id === undefined ? undefined : await nameOf(memory.collection_id)
          yield `${JSON.stringify(dumpRecord(memory, name))}\n`
        }
        before = page.nextCursor === undefined ? undefined : decodeCursor(page.nextCursor, [0, ''] as const)
      } while (before)
    },
  }
}

const dumpRecord = (memory: Memory, collectionName: string | undefined): object => ({
  memory_id: memory.id,
  content: memory.content,
  content_md5: memory.content_md5,
  agent_id: memory.written_by_agent_id,
  tags: memory.tags,
  collection_id: memory.collection_id,
  collection_name: collectionName,
  chunker_id: memory.chunker_id,
  created_at: memory.created_at,
  updated_at: memory.updated_at,
})
