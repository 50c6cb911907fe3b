import { CHUNKERS } from '../../memory/chunker/index.ts'
import { readFirstCells } from '../../memory/first-cells.ts'
import { listCollections } from '../../memory/store/collections.ts'
import type { Console } from '../settings.ts'
import type { Page, PageRequest } from './page.ts'
import { cursorOf } from './workspaces.ts'

const PAGE = 50
const CHOICES = 200

/** The Memories of a workspace, newest first. @throws not_found 404. */
export async function memoriesPage({ service }: Console, request: PageRequest): Promise<Page> {
  const workspace = await service.requireWorkspace(request.param('ws'))
  const collection = request.query('collection')
  const before = cursorOf(request, [0, ''] as const)
  const db = service.seams.metadata
  const [collections, { items, nextCursor }] = await Promise.all([
    listCollections(db, workspace.id, CHOICES, undefined),
    service.memories.list(workspace, collection, false, PAGE, before),
  ])
  const previews = await readFirstCells(
    service.seams,
    items.map(({ id }) => id),
    'skip',
  )
  const memories = items.map((memory) => ({ ...memory, preview: previews.get(memory.id)?.text }))
  return {
    template: './memories',
    title: `Memories of ${workspace.name}`,
    data: {
      workspace,
      tab: 'memories',
      memories,
      nextCursor,
      isFirst: before === undefined,
      collection,
      collections: collections.items,
      collectionNames: new Map(collections.items.map(({ id, name }) => [id, name])),
      chunkers: CHUNKERS,
    },
  }
}
