import * as z from 'zod'
import { edgesAnswer, linkAnswer, traverseAnswer } from '../answers.ts'
import { CLIENT_EDGE_TYPES, type Edge } from '../model.ts'
import { agentIdSchema, linkRequest, neighborsRequest, traverseRequest } from '../requests.ts'
import { findEdgeOwner } from '../store/edges.ts'
import { cursorArgument, fittingPart, nextCursor } from './parts.ts'
import { tool, workspaceId, type Tool } from './tool.ts'

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
      agent_id: agentIdSchema,
      source_memory_id: target_memory_id,
      target_memory_id,
      edge_type: z.enum(CLIENT_EDGE_TYPES),
      properties_json,
    }),
    linkAnswer,
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
    z.strictObject({ edge_id: z.string(), agent_id: agentIdSchema, workspace_id: workspaceId.optional() }),
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
      description: 'List the Edges of a Memory and the headers of the Memories they join. k: so many a direction.',
      effect: 'reads',
      graph: true,
    },
    neighborsRequest.in.omit({ type: true }).extend({ ...inWorkspace, ...cursorArgument }),
    edgesAnswer,
    async (call, { workspace_id, edge_types: types, cursor, ...request }) => {
      const { id } = await call.workspace(workspace_id)
      const { edges, neighbors } = await call.service.graph.neighbors(id, { ...request, types })
      const ends = new Map(neighbors.map((header) => [header.memory_id, header]))
      const joined = edges.map((edge) => ({ edge, header: ends.get(farEnd(edge, request.memory_id)) }))
      const { items, rest } = fittingPart(joined, cursor, request.k !== undefined)
      const headers = new Set(items.flatMap(({ header }) => header ?? []))
      return { edges: items.map(({ edge }) => edge), neighbors: [...headers], ...rest }
    },
  ),
  tool(
    {
      name: 'mem_traverse',
      description: 'Walk along Edges from a Memory, layer by layer. filter hides Memories but walks through them.',
      effect: 'reads',
      graph: true,
    },
    traverseRequest.in.omit({ type: true }).extend({ ...inWorkspace, depth: z.int(), ...cursorArgument }),
    traverseAnswer.extend(nextCursor),
    async (call, { workspace_id, edge_types: types, cursor, ...request }) => {
      const { id } = await call.workspace(workspace_id)
      const { layers, ...found } = await call.service.graph.traverse(id, { ...request, types })
      const steps = layers.flatMap((layer, depth) => layer.map((step) => ({ step, depth })))
      const { items, rest } = fittingPart(steps, cursor, false)
      // Every layer up to the last one that is shown, so that its place says how far away it is.
      const shown = layers.slice(0, 1 + (items.at(-1)?.depth ?? -1))
      const parts = shown.map((_, at) => items.flatMap(({ step, depth }) => (depth === at ? step : [])))
      return { ...found, layers: parts, ...rest }
    },
  ),
]

const farEnd = (edge: Edge, from: string): string =>
  edge.source_memory_id === from ? edge.target_memory_id : edge.source_memory_id
