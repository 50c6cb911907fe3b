import * as z from 'zod'
import { CLIENT_EDGE_TYPES, EDGE_TYPES, edgeSchema, headerSchema, type Edge, type MemoryHeader } from '../model.ts'
import { linkRequest, neighborsRequest, traverseRequest, type Direction } from '../requests.ts'
import { findEdgeOwner } from '../store/edges.ts'
import type { EdgesAnswer } from '../walk.ts'
import { ANSWER_CHARACTERS } from './lists.ts'
import { record, tool, workspaceId, writer, type Tool } from './tool.ts'

const inWorkspace = { workspace_id: workspaceId }
const { target_memory_id, properties_json } = linkRequest.in.shape

/** Contract: memory.md 12.2. */
export const graphTools: readonly Tool[] = [
  tool(
    {
      name: 'mem_link',
      description: 'Join two Memories by an Edge, from source to target.',
      effect: 'ensures',
      graph: true,
    },
    z.strictObject({
      ...inWorkspace,
      agent_id: writer,
      source_memory_id: target_memory_id,
      target_memory_id,
      edge_type: z.enum(CLIENT_EDGE_TYPES),
      properties_json,
    }),
    z.object({ edge: edgeSchema, ledger_id: z.string() }),
    async (call, { workspace_id, agent_id, ...wish }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.links.link(caller, workspace.id, wish)
    },
  ),
  tool(
    {
      name: 'mem_unlink',
      description: 'Remove an Edge. Those of type vector_neighbor, made by auto-link, stay.',
      effect: 'changes',
      graph: true,
    },
    z.strictObject({ edge_id: z.string(), agent_id: writer, workspace_id: workspaceId.optional() }),
    z.object({ edge_id: z.string(), unlinked: z.literal(true) }),
    async (call, { edge_id, agent_id, workspace_id }) => {
      const { graph } = call.service.seams
      const owner = await call.ownerOf(
        'edge',
        edge_id,
        workspace_id,
        async () => graph && findEdgeOwner(graph, edge_id),
      )
      const { caller } = await call.write(owner, agent_id)
      await call.service.links.unlink(caller, owner, edge_id)
      return { edge_id, unlinked: true as const }
    },
  ),
  tool(
    {
      name: 'mem_neighbors',
      description:
        'List the Edges of a Memory and the headers of the Memories they join. Without k a long answer is cut, and truncated says so.',
      effect: 'reads',
      graph: true,
    },
    neighborsRequest.in.omit({ type: true }).extend(inWorkspace),
    z.object({
      edges: z.array(record<Edge>()),
      neighbors: z.array(headerSchema),
      truncated: z.literal(true).optional(),
    }),
    async (call, { workspace_id, edge_types: types, k, ...rest }) => {
      const { id } = await call.workspace(workspace_id)
      const list = (most: number | undefined): Promise<EdgesAnswer> =>
        call.service.graph.neighbors(id, { ...rest, types, k: most })
      const found = await list(k)
      const fitting = k === undefined ? fittingK(found, rest.direction) : undefined
      return fitting === undefined ? found : { ...(await list(fitting)), truncated: true as const }
    },
  ),
  tool(
    {
      name: 'mem_traverse',
      description: 'Walk along Edges from a Memory, layer by layer. filter hides Memories but walks through them.',
      effect: 'reads',
      graph: true,
    },
    traverseRequest.in.omit({ type: true }).extend({ ...inWorkspace, depth: z.int() }),
    z.object({
      seed: record<MemoryHeader>(),
      layers: z.array(
        z.array(z.object({ memory_id: z.string(), via_edge_id: z.string(), via_edge_type: z.enum(EDGE_TYPES) })),
      ),
      stats: z.object({ nodes_visited: z.int(), edges_walked: z.int(), truncated: z.boolean() }),
    }),
    async (call, { workspace_id, edge_types: types, ...rest }) => {
      const { id } = await call.workspace(workspace_id)
      return call.service.graph.traverse(id, { ...rest, types })
    },
  ),
]

/** The `k` that makes the answer fit, when it was not asked for so large; undefined when it fits. */
function fittingK(found: EdgesAnswer, direction: Direction): number | undefined {
  const size = JSON.stringify(found).length
  if (size <= ANSWER_CHARACTERS) return undefined
  const count = Math.floor((found.edges.length * ANSWER_CHARACTERS) / size)
  return Math.max(1, direction === 'both' ? count >> 1 : count)
}
