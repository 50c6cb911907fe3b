import * as z from 'zod'
import { collectionsAnswer, workspacesAnswer } from '../answers.ts'
import { collectionSchema, workspaceSchema } from '../model.ts'
import { collectionRequest, workspaceRequest } from '../requests.ts'
import { cursorKey } from '../routes/lists.ts'
import { findCollectionOwner, listCollections } from '../store/collections.ts'
import { listWorkspaces } from '../store/workspaces.ts'
import { fittingPage, pageArguments } from './parts.ts'
import { deletedAnswer, tool, workspaceId, type Tool } from './tool.ts'

const inWorkspace = z.strictObject({ workspace_id: workspaceId })

/** Contract: memory.md 12.2. */
export const workspaceTools: readonly Tool[] = [
  tool(
    {
      name: 'mem_create_workspace',
      description: 'Make a workspace: a separate memory with its own Memories, graph and agents.',
      effect: 'adds',
    },
    workspaceRequest,
    workspaceSchema,
    async (call, request) => {
      const workspace = await call.service.workspaces.create(call.caller, request)
      await call.admitPinned(workspace)
      return workspace
    },
  ),
  tool(
    { name: 'mem_get_workspace', description: 'Show a workspace and its settings.', effect: 'reads' },
    inWorkspace,
    workspaceSchema,
    (call, args) => call.workspace(args.workspace_id),
  ),
  tool(
    {
      name: 'mem_list_workspaces',
      description: 'List workspaces, newest first. Start here: nearly every other tool needs a workspace_id.',
      effect: 'reads',
    },
    z.strictObject(pageArguments),
    workspacesAnswer,
    async (call, { limit, cursor }) => {
      const before = cursorKey(cursor, [''] as const)?.[0]
      const { items, rest } = await fittingPage(limit, 100, 200, (most) =>
        listWorkspaces(call.service.seams.metadata, most, before, call.tenant),
      )
      return { workspaces: items, ...rest }
    },
  ),
  tool(
    { name: 'mem_update_workspace', description: 'Change the given settings of a workspace.', effect: 'changes' },
    workspaceRequest.partial().extend(inWorkspace.shape),
    workspaceSchema,
    async (call, { workspace_id, ...changes }) => {
      const { workspace, caller } = await call.write(workspace_id)
      return call.service.workspaces.change(caller, workspace.id, changes)
    },
  ),
  tool(
    {
      name: 'mem_delete_workspace',
      description: 'Delete a workspace. Refused (not_empty) while it holds Memories.',
      effect: 'changes',
    },
    inWorkspace,
    deletedAnswer,
    async (call, args) => {
      const { workspace, caller } = await call.write(args.workspace_id)
      await call.service.workspaces.delete(caller, workspace.id)
      return { deleted: workspace.id }
    },
  ),
  tool(
    {
      name: 'mem_create_collection',
      description: 'Make a collection: a named group of Memories in a workspace.',
      effect: 'adds',
    },
    collectionRequest.extend(inWorkspace.shape),
    collectionSchema,
    async (call, { workspace_id, ...request }) => {
      const { workspace, caller } = await call.write(workspace_id)
      return call.service.workspaces.createCollection(caller, workspace.id, request)
    },
  ),
  tool(
    { name: 'mem_list_collections', description: 'List the collections of a workspace by name.', effect: 'reads' },
    inWorkspace.extend(pageArguments),
    collectionsAnswer,
    async (call, { workspace_id, limit, cursor }) => {
      const { id } = await call.workspace(workspace_id)
      const after = cursorKey(cursor, [''] as const)?.[0]
      const { items, rest } = await fittingPage(limit, 100, 1000, (most) =>
        listCollections(call.service.seams.metadata, id, most, after),
      )
      return { collections: items, ...rest }
    },
  ),
  tool(
    {
      name: 'mem_delete_collection',
      description: 'Delete a collection. Refused (not_empty) while Memories refer to it.',
      effect: 'changes',
    },
    z.strictObject({ collection_id: z.string(), workspace_id: workspaceId.optional() }),
    deletedAnswer,
    async (call, { collection_id: id, workspace_id }) => {
      const owner = await call.ownerOf('collection', id, workspace_id, () =>
        findCollectionOwner(call.service.seams.metadata, id),
      )
      const { caller } = await call.write(owner)
      await call.service.workspaces.deleteCollection(caller, owner, id)
      return { deleted: id }
    },
  ),
]
