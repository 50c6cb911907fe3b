import type { Caller } from './caller.ts'
import { invalidInput, notFound } from './errors.ts'
import type { Mutations } from './mutation.ts'
import { findMemory } from './store/memories.ts'
import { countTags, deleteTag, hasTag, setTag } from './store/tags.ts'

const TAGS_MAX = 256

/** Sets one tag; neither watermark nor `updated_at` moves. @throws not_found 404, invalid_input 400 at 256 tags. */
export async function upsertTag(
  mutations: Mutations,
  caller: Caller,
  workspaceId: string,
  memoryId: string,
  key: string,
  value: string,
): Promise<void> {
  await mutations.run(caller, workspaceId, async (mutation) => {
    if (!(await findMemory(mutation.tx, workspaceId, memoryId))) throw notFound('memory', memoryId)
    const isNew = !(await hasTag(mutation.tx, memoryId, key))
    if (isNew && (await countTags(mutation.tx, memoryId)) >= TAGS_MAX) {
      throw invalidInput(`key is one too many: a Memory has at most ${TAGS_MAX} tags`, 'key')
    }
    await setTag(mutation.tx, workspaceId, memoryId, key, value)
    mutation.record('tag_set', { target: memoryId, metadata: { key } })
  })
}

/** Removes one tag; an absent one changes nothing and is not recorded. @throws not_found 404. */
export async function removeTag(
  mutations: Mutations,
  caller: Caller,
  workspaceId: string,
  memoryId: string,
  key: string,
): Promise<void> {
  await mutations.run(caller, workspaceId, async (mutation) => {
    if (!(await findMemory(mutation.tx, workspaceId, memoryId))) throw notFound('memory', memoryId)
    if (await deleteTag(mutation.tx, memoryId, key)) {
      mutation.record('tag_delete', { target: memoryId, metadata: { key } })
    }
  })
}
