import * as z from 'zod'
import { parseTimestamp } from '../base/clock.ts'
import { md5 } from '../base/hash.ts'
import type { Caller } from './caller.ts'
import { MemoryError, notFound } from './errors.ts'
import { MEMORY_ID, RESERVED_AGENTS, type Workspace } from './model.ts'
import { agentIdSchema, collectionRequest, imprintRequest } from './requests.ts'
import type { MemoryService } from './service.ts'
import { findCollection, findCollectionByName } from './store/collections.ts'
import { findByContent, findIdUse } from './store/import.ts'

const moment = z
  .string()
  .transform((text) => parseTimestamp(text))
  .pipe(z.number('must be an ISO 8601 time'))

/** A Memory as a dump tells it; only `content` is needed. Contract: memory.md 14, Bulk. */
export const importRecord = z.strictObject({
  memory_id: z.string().optional(),
  content: z.string(),
  content_md5: z.string().optional(),
  agent_id: agentIdSchema.refine((id) => !RESERVED_AGENTS.includes(id), 'is reserved').optional(),
  tags: imprintRequest.shape.tags,
  collection_id: z.string().optional(),
  collection_name: collectionRequest.shape.name.optional(),
  chunker_id: imprintRequest.shape.chunker_id,
  created_at: moment.optional(),
  updated_at: moment.optional(),
})
export type ImportRecord = z.infer<typeof importRecord>

export const CONFLICT_RULES = ['skip', 'overwrite', 'error'] as const
export type ConflictRule = (typeof CONFLICT_RULES)[number]

/** Brings in one Memory of a dump, and tells whether anything was written.
 *  @throws already_exists 409 for a duplicate under the rule `error`; what imprint and update throw. */
export async function importMemory(
  service: MemoryService,
  caller: Caller,
  workspace: Workspace,
  record: ImportRecord,
  rule: ConflictRule,
): Promise<'written' | 'skipped'> {
  const collectionId = await resolveCollection(service, caller, workspace.id, record)
  const duplicate = await findDuplicate(service, workspace.id, collectionId, record)
  if (duplicate === undefined) {
    await imprint(service, caller, workspace, record, collectionId)
    return 'written'
  }
  if (rule === 'skip') return 'skipped'
  if (rule === 'error') {
    throw new MemoryError('already_exists', `Memory ${duplicate} is the same as one in the file`, { id: duplicate })
  }
  const { head_watermark } = await service.memories.lookup(workspace, duplicate)
  const { content, tags = {} } = record
  await service.edits.update(caller, workspace, duplicate, { content, tags }, head_watermark)
  return 'written'
}

/** By name, made where it is missing; else by id. */
async function resolveCollection(
  { seams, workspaces }: MemoryService,
  caller: Caller,
  workspaceId: string,
  { collection_id: id, collection_name: name }: ImportRecord,
): Promise<string | undefined> {
  if (name !== undefined) {
    const known = await findCollectionByName(seams.metadata, workspaceId, name)
    return (known ?? (await workspaces.createCollection(caller, workspaceId, { name }))).id
  }
  if (id !== undefined && !(await findCollection(seams.metadata, workspaceId, id))) throw notFound('collection', id)
  return id
}

/** The same id, else the same content in the collection. */
async function findDuplicate(
  { seams }: MemoryService,
  workspaceId: string,
  collectionId: string | undefined,
  { memory_id: id, content }: ImportRecord,
): Promise<string | undefined> {
  const use = id === undefined ? undefined : await findIdUse(seams.metadata, id)
  if (use?.isLive && use.workspaceId === workspaceId) return id
  return findByContent(seams.metadata, workspaceId, collectionId, md5(content))
}

/** Under its own id where that is free. */
async function imprint(
  service: MemoryService,
  caller: Caller,
  workspace: Workspace,
  record: ImportRecord,
  collectionId: string | undefined,
): Promise<void> {
  const { memory_id: id, content, tags, chunker_id } = record
  const isFree = id !== undefined && MEMORY_ID.test(id) && !(await findIdUse(service.seams.metadata, id))
  await service.imprint.run(
    caller,
    workspace,
    { content, tags, chunker_id, collection_id: collectionId },
    {
      memoryId: isFree ? id : undefined,
      agentId: record.agent_id,
      createdAt: record.created_at,
      updatedAt: record.updated_at,
    },
  )
}
