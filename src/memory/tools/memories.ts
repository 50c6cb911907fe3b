import * as z from 'zod'
import { encodeCursor } from '../../base/pages.ts'
import {
  appendAnswer,
  forgetAnswer,
  imprintAnswer,
  memoriesAnswer,
  patchAnswer,
  updateAnswer,
  watermarksAnswer,
} from '../answers.ts'
import { memoryWithCellsSchema, pastMemorySchema, type Memory, type PastMemory } from '../model.ts'
import { agentIdSchema, appendRequest, imprintRequest, patchRequest, updateRequest } from '../requests.ts'
import { cursorKey } from '../routes/lists.ts'
import { cursorArgument, fits, fittingPage, fittingText, isShort, nextCursor, pageArguments } from './parts.ts'
import { tool, workspaceId, type Tool } from './tool.ts'

const inWorkspace = { workspace_id: workspaceId }
const asAgent = { ...inWorkspace, agent_id: agentIdSchema }
const ofMemory = { ...inWorkspace, memory_id: z.string() }
const ofMemoryAsAgent = { ...ofMemory, agent_id: agentIdSchema }

/** Contract: memory.md 12.2. */
export const memoryTools: readonly Tool[] = [
  tool(
    {
      name: 'mem_imprint',
      description: 'Remember a text as a new Memory. It is cut into Cells, which mem_recall finds.',
      effect: 'adds',
    },
    imprintRequest.extend(asAgent),
    imprintAnswer,
    async (call, { workspace_id, agent_id, ...request }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.imprint.run(caller, workspace, request)
    },
  ),
  tool(
    {
      name: 'mem_lookup',
      description:
        'Read a Memory with its Cells; with watermark, the exact text of that past version. Long content comes in parts without Cells: pass next_cursor as cursor for the next. include_cells: all at once.',
      effect: 'reads',
    },
    z.strictObject({
      ...ofMemory,
      watermark: z.string().optional(),
      include_cells: z.boolean().optional(),
      ...cursorArgument,
    }),
    memoryWithCellsSchema
      .extend({ ...pastMemorySchema.pick({ current_watermark: true }).shape, ...nextCursor })
      .partial({ cells: true, current_watermark: true }),
    async (call, { workspace_id, memory_id, watermark, include_cells, cursor }) => {
      const workspace = await call.workspace(workspace_id)
      const { memories } = call.service
      const [version, start] = cursorKey(cursor, ['', 0] as const) ?? [watermark, 0]
      if (version !== undefined) return partOf(await memories.at(workspace, memory_id, version), start)
      const { cells, ...memory } = await memories.lookup(workspace, memory_id)
      const whole = include_cells === false ? memory : { ...memory, cells }
      const json = JSON.stringify(whole)
      return include_cells === true || isShort(json) ? json : partOf(memory, 0)
    },
  ),
  tool(
    {
      name: 'mem_update',
      description:
        'Replace the content of a Memory. expected_watermark is the version you read; if it moved, the error cas_conflict names the head.',
      effect: 'changes',
    },
    updateRequest.required({ expected_watermark: true }).extend(ofMemoryAsAgent),
    updateAnswer,
    async (call, { workspace_id, memory_id, agent_id, ...request }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.edits.update(caller, workspace, memory_id, request, request.expected_watermark)
    },
  ),
  tool(
    {
      name: 'mem_patch',
      description:
        'Replace strings in a Memory, all or none. Each old_string must occur exactly once, or set replace_all.',
      effect: 'changes',
    },
    patchRequest.required({ expected_watermark: true }).extend(ofMemoryAsAgent),
    patchAnswer,
    async (call, { workspace_id, memory_id, agent_id, ...request }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.edits.patch(caller, workspace, memory_id, request, request.expected_watermark)
    },
  ),
  tool(
    {
      name: 'mem_append',
      description: 'Add text to the end of a Memory, without a separator.',
      effect: 'adds',
    },
    appendRequest.extend(ofMemoryAsAgent),
    appendAnswer,
    async (call, { workspace_id, memory_id, agent_id, ...request }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.edits.append(caller, workspace, memory_id, request, request.expected_watermark)
    },
  ),
  tool(
    {
      name: 'mem_forget',
      description:
        'Erase a Memory with all its versions and Edges, for ever. redact_audit also blanks its ledger entries.',
      effect: 'changes',
    },
    z.strictObject({ ...ofMemoryAsAgent, redact_audit: z.boolean().default(false) }),
    forgetAnswer,
    async (call, { workspace_id, memory_id, agent_id, redact_audit }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.forget.run(caller, workspace.id, memory_id, redact_audit, undefined)
    },
  ),
  tool(
    {
      name: 'mem_list_memories',
      description:
        'List Memories, newest first, with content where it is short; mem_lookup reads the others. To search, use mem_recall.',
      effect: 'reads',
    },
    z.strictObject({ ...inWorkspace, collection_id: z.string().optional(), ...pageArguments }),
    memoriesAnswer,
    async (call, { workspace_id, collection_id, limit, cursor }) => {
      const workspace = await call.workspace(workspace_id)
      const before = cursorKey(cursor, [0, ''] as const)
      const { items, rest } = await fittingPage(limit, 50, 200, async (most) => {
        const page = await call.service.memories.list(workspace, collection_id, true, most, before)
        return limit === undefined ? { ...page, items: page.items.map(withShortContent) } : page
      })
      return { memories: items, ...rest }
    },
  ),
  tool(
    {
      name: 'mem_get_watermark_history',
      description: 'List the versions of a Memory of the last 7 days, newest first.',
      effect: 'reads',
    },
    z.strictObject({ ...ofMemory, ...pageArguments }),
    watermarksAnswer,
    async (call, { workspace_id, memory_id, limit, cursor }) => {
      const { id } = await call.workspace(workspace_id)
      const before = cursorKey(cursor, [0] as const)?.[0]
      const { items, rest } = await fittingPage(limit, 1000, 1000, (most) =>
        call.service.memories.history(id, memory_id, most, before),
      )
      return { watermarks: items, ...rest }
    },
  ),
]

/** As much of the content from `start` on as fits; the cursor for the rest names the version, so that the parts belong together. */
function partOf(memory: Memory | PastMemory, start: number): Memory & { next_cursor?: string } {
  const { content = '', ...rest } = memory
  const part = fittingText(content.slice(start), rest)
  const end = start + part.length
  return {
    ...rest,
    content: part,
    ...(end < content.length && { next_cursor: encodeCursor([memory.head_watermark, end]) }),
  }
}

/** A Memory that fills more than a default answer is listed as with `include_content=false`. */
function withShortContent(memory: Memory): Memory {
  const { content: _, ...rest } = memory
  return fits(memory) ? memory : rest
}
