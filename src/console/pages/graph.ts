import { readFirstCells } from '../../memory/first-cells.ts'
import { parseWith } from '../../memory/routes/route.ts'
import { neighborsRequest, traverseRequest } from '../../memory/requests.ts'
import { invalidInput, MemoryError } from '../../memory/errors.ts'
import { subgraph } from '../../memory/subgraph.ts'
import { createFormat } from '../format.ts'
import { toRefusal, type Refusal } from '../errors.ts'
import type { Console } from '../settings.ts'
import type { Page, PageRequest } from './page.ts'

const LABEL = 40

/** What the graph page draws and `graph/data` answers. Contract: memory.md 14. */
export interface GraphData {
  nodes: { id: string; label: string; type: string }[]
  edges: { id: string; source: string; target: string; label: string }[]
  node_count: number
  edge_count_by_type: Record<string, number>
  /** There is more than what is drawn. */
  truncated: boolean
}

/** @throws not_found 404, graph_traverse_depth_exceeded 400, capability_unavailable 501. */
export async function graphData({ service, clock }: Console, ws: string, request: PageRequest): Promise<GraphData> {
  const workspace = await service.requireWorkspace(ws)
  service.requireGraph()
  const seed = request.query('seed')
  const depth = depthOf(request)
  const [shown, stats] = await Promise.all([
    subgraph(service, workspace.id, seed, depth),
    service.graph.stats(workspace.id),
  ])
  const format = createFormat(clock.now())
  const texts = await readFirstCells(service.seams, shown.memoryIds, 'skip')
  return {
    nodes: shown.memoryIds.map((id) => ({
      id,
      label: format.line(texts.get(id)?.text ?? '', LABEL) || format.short(id),
      type: id === seed ? 'seed' : 'memory',
    })),
    edges: shown.edges.map((edge) => ({
      id: edge.edge_id,
      source: edge.source_memory_id,
      target: edge.target_memory_id,
      label: edge.edge_type,
    })),
    node_count: stats.node_count,
    edge_count_by_type: stats.edge_count_by_type,
    truncated: shown.truncated,
  }
}

function depthOf({ query }: PageRequest): number {
  const depth = Number(query('depth') ?? 2)
  if (!Number.isInteger(depth) || depth < 1) throw invalidInput('depth must be a whole number from 1', 'depth')
  return depth
}

/** The graph around a seed, or of the whole workspace. @throws not_found 404 */
export async function graphPage(console: Console, request: PageRequest): Promise<Page> {
  const workspace = await console.service.requireWorkspace(request.param('ws'))
  const { graph, refusal } = console.service.graph.isAvailable ? await drawn(console, workspace.id, request) : {}
  const seed = request.query('seed')
  return {
    template: './graph',
    title: `Graph of ${workspace.name}`,
    ...(refusal && { status: refusal.status }),
    data: { workspace, tab: 'graph', graph, refusal, seed, depth: Number(request.query('depth') ?? 2) },
  }
}

/** What is refused is part of the page: the form keeps what was asked. */
async function drawn(
  console: Console,
  ws: string,
  request: PageRequest,
): Promise<{ graph?: GraphData; refusal?: Refusal }> {
  try {
    return { graph: await graphData(console, ws, request) }
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    return { refusal: toRefusal(error) }
  }
}

/** The graph as data, for the page and for programs that are signed in: as REST answers. Contract: memory.md 3.3, 14. */
export const graphReads: Readonly<Record<string, (console: Console, request: PageRequest) => Promise<unknown>>> = {
  data: (console, request) => graphData(console, workspaceOf(request), request),
  neighbors: async (console, request) => {
    const workspace = await open(console, request)
    const body = { memory_id: request.query('memory_id') ?? request.query('seed'), ...walkOf(request) }
    return console.service.graph.neighbors(
      workspace,
      parseWith(neighborsRequest, { ...body, k: numberOf(request, 'k') }),
    )
  },
  traverse: async (console, request) => {
    const workspace = await open(console, request)
    const seed = request.query('seed_memory_id') ?? request.query('seed')
    const body = { seed_memory_id: seed, ...walkOf(request), depth: numberOf(request, 'depth') }
    return console.service.graph.traverse(workspace, parseWith(traverseRequest, body))
  },
  stats: async (console, request) => console.service.graph.stats(await open(console, request)),
}

const workspaceOf = ({ query }: PageRequest): string => {
  const ws = query('ws') ?? query('workspace_id')
  if (ws === undefined) throw invalidInput('ws is required', 'ws')
  return ws
}

async function open({ service }: Console, request: PageRequest): Promise<string> {
  const { id } = await service.requireWorkspace(workspaceOf(request))
  service.requireGraph()
  return id
}

const walkOf = ({ query }: PageRequest): object => ({ direction: query('direction'), type: query('type') })

const numberOf = ({ query }: PageRequest, name: string): number | undefined => {
  const text = query(name)
  return text === undefined ? undefined : Number(text)
}
