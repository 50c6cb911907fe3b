import * as z from 'zod'
import { memoryWithCellsSchema, pastMemorySchema, versionSchema, type Memory } from '../model.ts'
import { appendRequest, imprintRequest, patchRequest, updateRequest } from '../requests.ts'
import { cursorKey } from '../routes/lists.ts'
import { fittingPage, nextCursor, pageArguments } from './lists.ts'
import { record, tool, workspaceId, writer, type Tool } from './tool.ts'

const inWorkspace = { workspace_id: workspaceId }
const asAgent = { ...inWorkspace, agent_id: writer }
const ofMemory = { ...inWorkspace, memory_id: z.string() }
const ofMemoryAsAgent = { ...ofMemory, agent_id: writer }

/** What every edit answers with (*E* of memory.md 3.2). */
const edited = z.object({
  memory_id: z.string(),
  watermark: z.string(),
  content_md5: z.string(),
  cells_skipped: z.int(),
  last_modified_by_agent_id: z.string(),
  ledger_id: z.string().optional(),
  latency_ms: z.number(),
})

/** Contract: memory.md 12.2. */
export const memoryTools: readonly Tool[] = [
  tool(
    {
      name: 'mem_imprint',
      description: 'Remember a text as a new Memory. It is cut into Cells, which mem_recall finds.',
      effect: 'adds',
    },
    imprintRequest.extend(asAgent),
    z.object({
      memory_id: z.string(),
      watermark: z.string(),
      content_md5: z.string(),
      cells_created: z.int(),
      recall_ready: z.boolean(),
      auto_linked_edges: z.int().optional(),
      written_by_agent_id: z.string(),
      ledger_id: z.string(),
      latency_ms: z.number(),
    }),
    async (call, { workspace_id, agent_id, ...request }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.imprint.run(caller, workspace, request)
    },
  ),
  tool(
    {
      name: 'mem_lookup',
      description: 'Read a whole Memory with its Cells; with watermark, the exact text of that past version.',
      effect: 'reads',
    },
    z.strictObject({ ...ofMemory, watermark: z.string().optional() }),
    memoryWithCellsSchema
      .partial({ cells: true })
      .extend(pastMemorySchema.pick({ current_watermark: true }).partial().shape),
    async (call, { workspace_id, memory_id, watermark }) => {
      const workspace = await call.workspace(workspace_id)
      const { memories } = call.service
      return watermark === undefined
        ? memories.lookup(workspace, memory_id)
        : memories.at(workspace, memory_id, watermark)
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
    edited.extend({ cells_re_embedded: z.int() }),
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
    edited.extend({
      patches_applied: z.int(),
      cells_re_embedded: z.int(),
      cells_added: z.int(),
      cells_removed: z.int(),
    }),
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
    edited.extend({ cells_added: z.int() }),
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
    z.object({
      memory_id: z.string(),
      watermark: z.string(),
      cascaded_edges: z.int(),
      redacted_entries: z.int().optional(),
      warnings: z.array(z.string()).optional(),
      ledger_id: z.string(),
    }),
    async (call, { workspace_id, memory_id, agent_id, redact_audit }) => {
      const { workspace, caller } = await call.write(workspace_id, agent_id)
      return call.service.forget.run(caller, workspace.id, memory_id, redact_audit, undefined)
    },
  ),
  tool(
    {
      name: 'mem_list_memories',
      description: 'List Memories with their content, newest first. To search, use mem_recall.',
      effect: 'reads',
    },
    z.strictObject({ ...inWorkspace, collection_id: z.string().optional(), ...pageArguments }),
    z.object({ memories: z.array(record<Memory>()), ...nextCursor }),
    async (call, { workspace_id, collection_id, limit, cursor }) => {
      const workspace = await call.workspace(workspace_id)
      const before = cursorKey(cursor, [0, ''] as const)
      const { items, rest } = await fittingPage(limit, 50, 200, (most) =>
        call.service.memories.list(workspace, collection_id, true, most, before),
      )
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
    z.object({ watermarks: z.array(versionSchema), ...nextCursor }),
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
