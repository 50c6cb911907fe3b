import * as z from 'zod'
import { pinAnswer } from '../answers.ts'
import { recallAnswerSchema, type RecallHit } from '../model.ts'
import { agentIdSchema, pinRequest, recallRequest } from '../requests.ts'
import { findPinOwner } from '../store/pins.ts'
import { cursorArgument, fits, fittingPart, fittingText, isShort, nextCursor } from './parts.ts'
import { tool, workspaceId, type Tool } from './tool.ts'

const { query, mode, k, watermark, label } = pinRequest.shape
const pinChoices = { mode: mode.unwrap().optional(), k: k.unwrap().optional() }

/** Contract: memory.md 12.2. */
export const recallTools: readonly Tool[] = [
  tool(
    {
      name: 'mem_recall',
      description:
        'Find the Memories that say most about a query; each hit brings its best passage. mode lookup instead reads memory_ids (query may be empty). filters.tags: key to accepted value(s). Without k: 5, as many at once as are short; next_cursor leads on.',
      effect: 'reads',
    },
    recallRequest.extend({
      workspace_id: workspaceId,
      query: recallRequest.shape.query.unwrap(),
      k: z.int().min(1, 'must be 1 to 100').max(100, 'must be 1 to 100').optional(),
      ...cursorArgument,
    }),
    recallAnswerSchema.extend(nextCursor),
    async (call, { workspace_id, cursor, ...request }) => {
      const isSized = request.k !== undefined
      const answer = await call.service.recall.run(call, await call.workspace(workspace_id), request)
      const json = JSON.stringify(answer)
      if (cursor === undefined && (isSized || isShort(json) || fits(answer.results))) return json
      const hits = isSized ? answer.results : answer.results.map(withShortText)
      const { items, rest } = fittingPart(hits, cursor, isSized)
      return { ...answer, results: items, ...rest }
    },
  ),
  tool(
    {
      name: 'mem_pin',
      description: 'Keep a query in the workspace for later. watermark is a reference of yours, stored as it is.',
      effect: 'adds',
    },
    z
      .strictObject({
        workspace_id: workspaceId,
        query: z.union([query, z.strictObject({ query, ...pinChoices })]),
        ...pinChoices,
        watermark,
        label,
        agent_id: agentIdSchema.optional(),
      })
      .transform(({ query: asked, ...rest }) => {
        const pinned = typeof asked === 'string' ? { query: asked } : asked
        return { ...rest, query: pinned.query, mode: rest.mode ?? pinned.mode ?? 'hybrid', k: rest.k ?? pinned.k ?? 10 }
      }),
    pinAnswer,
    async (call, { workspace_id, agent_id, ...request }) => {
      const { workspace, caller, named } = await call.write(workspace_id, agent_id)
      return call.service.workspaces.createPin(caller, workspace.id, request, named)
    },
  ),
  tool(
    { name: 'mem_unpin', description: 'Delete a kept query.', effect: 'changes' },
    z.strictObject({ pin_id: z.string(), workspace_id: workspaceId.optional() }),
    z.object({ pin_id: z.string(), unpinned: z.literal(true) }),
    async (call, { pin_id, workspace_id }) => {
      const owner = await call.ownerOf('pin', pin_id, workspace_id, () =>
        findPinOwner(call.service.seams.metadata, pin_id),
      )
      const { caller } = await call.write(owner)
      await call.service.workspaces.deletePin(caller, owner, pin_id)
      return { pin_id, unpinned: true as const }
    },
  ),
]

/** A hit that alone is more than a default answer brings the beginning of its text: `mem_lookup` reads all of it. */
function withShortText(hit: RecallHit): RecallHit {
  if (fits(hit)) return hit
  const { text, cells: _, ...rest } = hit
  return { ...rest, text: fittingText(text, rest) }
}
