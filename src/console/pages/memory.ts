import { invalidInput, MemoryError } from '../../memory/errors.ts'
import { readFirstCells } from '../../memory/first-cells.ts'
import { CLIENT_EDGE_TYPES, EDGE_TYPES, type MemoryWithCells, type Workspace } from '../../memory/model.ts'
import { directionSchema, traverseRequest } from '../../memory/requests.ts'
import { parseWith } from '../../memory/routes/route.ts'
import type { MemoryService } from '../../memory/service.ts'
import { findCollection } from '../../memory/store/collections.ts'
import { diffLines } from '../diff.ts'
import { toRefusal } from '../errors.ts'
import type { Console } from '../settings.ts'
import type { Page, PageRequest } from './page.ts'
import { cursorOf } from './workspaces.ts'

const TABS = ['content', 'cells', 'edges', 'history'] as const
type Tab = (typeof TABS)[number]

/** More than this of a content is shown in a file of its own, so that the page stays small. */
const SHOWN = 25_000
const CELLS = 20
const EDGES = 50
const VERSIONS = 30

/** One Memory, by tab. @throws not_found 404. */
export async function memoryPage(console: Console, request: PageRequest): Promise<Page> {
  const { service } = console
  const workspace = await service.requireWorkspace(request.param('ws'))
  const memory = await service.memories.lookup(workspace, request.param('mem'))
  const tab = TABS.find((name) => name === request.query('tab')) ?? 'content'
  const shown = await dataOf(tab, service, workspace, memory, request)
  const { content = '', cells } = memory
  return {
    template: `./memory/${tab}`,
    title: memory.id,
    data: {
      workspace,
      memory,
      tab: 'memories',
      view: tab,
      preview: cells[0]?.text ?? '',
      length: content.length,
      ...shown,
    },
  }
}

/** The whole content as a file. @throws not_found 404. */
export async function contentFile(
  { service }: Console,
  { param }: PageRequest,
): Promise<{ name: string; content: string }> {
  const workspace = await service.requireWorkspace(param('ws'))
  const { id, content = '' } = await service.memories.lookup(workspace, param('mem'))
  return { name: `${id}.txt`, content }
}

function dataOf(
  tab: Tab,
  service: MemoryService,
  workspace: Workspace,
  memory: MemoryWithCells,
  request: PageRequest,
): Promise<object> {
  switch (tab) {
    case 'content':
      return contentTab(service, workspace, memory)
    case 'cells':
      return cellsTab(memory, request)
    case 'edges':
      return edgesTab(service, workspace, memory, request)
    case 'history':
      return historyTab(service, workspace, memory, request)
  }
}

async function contentTab(service: MemoryService, workspace: Workspace, memory: MemoryWithCells): Promise<object> {
  const { content = '', collection_id: id } = memory
  const collection = id === undefined ? undefined : await findCollection(service.seams.metadata, workspace.id, id)
  return { collection, shown: content.slice(0, SHOWN), isWhole: content.length <= SHOWN }
}

/** Pages of Cells go by `from`, the first one's `seq`. */
async function cellsTab({ cells }: MemoryWithCells, { query }: PageRequest): Promise<object> {
  const from = Math.max(0, Math.trunc(Number(query('from') ?? 0)) || 0)
  const page = cells.slice(from, from + CELLS)
  return { page, from, next: from + CELLS < cells.length ? from + CELLS : undefined }
}

async function edgesTab(
  service: MemoryService,
  workspace: Workspace,
  memory: MemoryWithCells,
  request: PageRequest,
): Promise<object> {
  if (!service.graph.isAvailable) return { isAvailable: false }
  const { query } = request
  const direction = directionSchema.safeParse(query('direction') ?? 'both')
  if (!direction.success) throw invalidInput('direction must be out, in or both', 'direction')
  const type = query('type')
  if (type !== undefined && !EDGE_TYPES.some((known) => known === type)) {
    throw invalidInput(`type ${type} is not one of ${EDGE_TYPES.join(', ')}`, 'type')
  }
  const types = type === undefined ? undefined : [type]
  const before = cursorOf(request, [''] as const)?.[0]
  const answer = await service.graph.edges(workspace.id, memory.id, direction.data, types, EDGES, before)
  const walk = await walkFrom(service, workspace, memory, query)
  const reached = walk.layers.flat().map(({ memory_id }) => memory_id)
  const neighbors = answer.neighbors.map(({ memory_id }) => memory_id)
  return {
    isAvailable: true,
    direction: direction.data,
    type,
    linkTypes: CLIENT_EDGE_TYPES,
    edges: answer.edges,
    nextCursor: answer.next_cursor,
    isFirst: before === undefined,
    walk,
    previews: await readFirstCells(service.seams, [...neighbors, ...reached], 'skip'),
  }
}

interface Walk {
  depth: number
  direction: string
  layers: { memory_id: string; via_edge_type: string }[][]
  stats?: { nodes_visited: number; edges_walked: number; truncated: boolean }
  refusal?: object
}

/** Where walking from here leads, when it was asked for. */
async function walkFrom(
  service: MemoryService,
  workspace: Workspace,
  memory: MemoryWithCells,
  query: PageRequest['query'],
): Promise<Walk> {
  const depth = Number(query('depth') ?? 0)
  const direction = query('walk') ?? 'out'
  if (depth === 0) return { depth, direction, layers: [] }
  try {
    const request = parseWith(traverseRequest, { seed_memory_id: memory.id, depth, direction })
    const { layers, stats } = await service.graph.traverse(workspace.id, request)
    return { depth, direction, layers: layers.map((layer) => layer.slice(0, EDGES)), stats }
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    return { depth, direction, layers: [], refusal: toRefusal(error) }
  }
}

async function historyTab(
  service: MemoryService,
  workspace: Workspace,
  memory: MemoryWithCells,
  request: PageRequest,
): Promise<object> {
  const before = cursorOf(request, [0] as const)?.[0]
  const { items, nextCursor } = await service.memories.history(workspace.id, memory.id, VERSIONS, before)
  const from = request.query('from')
  const list = { versions: items, nextCursor, isFirst: before === undefined }
  if (from === undefined) return list
  const to = request.query('to') ?? memory.head_watermark
  const [older, newer] = await Promise.all([
    service.memories.at(workspace, memory.id, from),
    service.memories.at(workspace, memory.id, to),
  ])
  return { ...list, from, to, older, newer, diff: diffLines(older.content ?? '', newer.content ?? '') }
}
