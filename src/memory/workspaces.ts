import { toTimestamp } from '../base/clock.ts'
import type { IdSource } from '../base/ids.ts'
import { registerReserved } from './agents.ts'
import type { Caller } from './caller.ts'
import { chunkerNamed } from './chunker/index.ts'
import type { Embedding } from './embedding.ts'
import { MemoryError, notFound } from './errors.ts'
import type { Collection, Pin, Workspace } from './model.ts'
import type { Mutations } from './mutation.ts'
import { refuseBeyond, type Limits } from './quota.ts'
import type { CollectionRequest, PinRequest, WorkspaceRequest } from './requests.ts'
import { deleteCollection, findCollection, findCollectionByName, insertCollection } from './store/collections.ts'
import { countMemories } from './store/memories.ts'
import { deletePin, insertPin } from './store/pins.ts'
import { countWorkspaces, deleteWorkspace, findWorkspace, saveWorkspace } from './store/workspaces.ts'

const AUTO_LINK_DEFAULTS = {
  auto_link_enabled: false,
  auto_link_threshold: 0.7,
  auto_link_max_edges: 10,
  auto_link_max_incoming_per_day: 100,
}

type WorkspaceChanges = { [Key in keyof WorkspaceRequest]?: WorkspaceRequest[Key] | undefined }

/** Workspaces, and the plain records in them: collections and pins. Contract: memory.md 1.2, 1.3, 1.8, 3.1, 3.4. */
export class Workspaces {
  readonly #mutations: Mutations
  readonly #ids: IdSource
  readonly #embedding: Embedding
  readonly #limits: Limits

  constructor(mutations: Mutations, ids: IdSource, embedding: Embedding, limits: Limits) {
    this.#mutations = mutations
    this.#ids = ids
    this.#embedding = embedding
    this.#limits = limits
  }

  /** @throws invalid_input 400 for an unknown chunker or provider, quota_exceeded 429. */
  create(caller: Caller, request: WorkspaceRequest): Promise<Workspace> {
    this.#check(request)
    const id = this.#ids('ws_')
    return this.#mutations.create(caller, id, async (mutation) => {
      await refuseBeyond(this.#limits, 'workspaces', () => countWorkspaces(mutation.tx))
      const now = toTimestamp(mutation.now)
      const workspace = recordOf(request, AUTO_LINK_DEFAULTS, id, now, now)
      await saveWorkspace(mutation.tx, workspace)
      await registerReserved(mutation, id)
      mutation.record('workspace_create', { target: id })
      return workspace
    })
  }

  /** Replaces the record: absent optional keys are cleared, absent `auto_link_*` keys and `created_at` kept. */
  replace(caller: Caller, id: string, request: WorkspaceRequest): Promise<Workspace> {
    this.#check(request)
    return this.#save(caller, id, () => request)
  }

  /** Changes the keys given; all others keep their values. */
  change(caller: Caller, id: string, changes: WorkspaceChanges): Promise<Workspace> {
    this.#check(changes)
    return this.#save(caller, id, (old) => ({ ...old, ...changes, name: changes.name ?? old.name }))
  }

  #save(caller: Caller, id: string, requestFor: (old: Workspace) => WorkspaceRequest): Promise<Workspace> {
    return this.#mutations.run(caller, id, async (mutation) => {
      const old = await findWorkspace(mutation.tx, id)
      if (!old) throw notFound('workspace', id)
      const workspace = recordOf(requestFor(old), old, id, old.created_at, toTimestamp(mutation.now))
      await saveWorkspace(mutation.tx, workspace)
      mutation.record('workspace_update', { target: id })
      return workspace
    })
  }

  /** @throws not_empty 409 while live Memories exist. */
  async delete(caller: Caller, id: string): Promise<void> {
    await this.#mutations.run(caller, id, async (mutation) => {
      const count = await countMemories(mutation.tx, id)
      if (count > 0) throw notEmpty('workspace', id, count)
      await deleteWorkspace(mutation.tx, id)
      mutation.record('workspace_delete', { target: id })
    })
  }

  /** @throws already_exists 409 when the workspace has a collection of this name. */
  createCollection(caller: Caller, workspaceId: string, { name }: CollectionRequest): Promise<Collection> {
    return this.#mutations.run(caller, workspaceId, async (mutation) => {
      const known = await findCollectionByName(mutation.tx, workspaceId, name)
      if (known) throw new MemoryError('already_exists', `a collection named ${name} exists`, { id: known.id })
      const collection = {
        id: this.#ids('coll_'),
        workspace_id: workspaceId,
        name,
        created_at: toTimestamp(mutation.now),
      }
      await insertCollection(mutation.tx, collection)
      mutation.record('collection_create', { target: collection.id })
      return collection
    })
  }

  /** @throws not_found 404, not_empty 409 while live Memories refer to it. */
  async deleteCollection(caller: Caller, workspaceId: string, id: string): Promise<void> {
    await this.#mutations.run(caller, workspaceId, async (mutation) => {
      if (!(await findCollection(mutation.tx, workspaceId, id))) throw notFound('collection', id)
      const count = await countMemories(mutation.tx, workspaceId, id)
      if (count > 0) throw notEmpty('collection', id, count)
      await deleteCollection(mutation.tx, id)
      mutation.record('collection_delete', { target: id })
    })
  }

  /** Saves a query. `namedAgent` is the agent the request names, if any. */
  createPin(
    caller: Caller,
    workspaceId: string,
    request: PinRequest,
    namedAgent: string | undefined,
  ): Promise<{ pin_id: string; watermark: string }> {
    return this.#mutations.run(caller, workspaceId, async (mutation) => {
      const pin: Pin = {
        ...request,
        pin_id: this.#ids('pin_'),
        workspace_id: workspaceId,
        watermark: request.watermark ?? this.#ids('wmk_'),
        ...(namedAgent !== undefined && { created_by: namedAgent }),
        created_at: toTimestamp(mutation.now),
      }
      await insertPin(mutation.tx, pin)
      mutation.record('pin_create', { target: pin.pin_id })
      return { pin_id: pin.pin_id, watermark: pin.watermark }
    })
  }

  /** @throws not_found 404. */
  async deletePin(caller: Caller, workspaceId: string, id: string): Promise<void> {
    await this.#mutations.run(caller, workspaceId, async (mutation) => {
      if (!(await deletePin(mutation.tx, workspaceId, id))) throw notFound('pin', id)
      mutation.record('pin_delete', { target: id })
    })
  }

  #check({ chunker_id, embedding_model }: WorkspaceChanges): void {
    if (chunker_id !== undefined) chunkerNamed(chunker_id)
    if (embedding_model !== undefined) this.#embedding.embedder(embedding_model)
  }
}

const notEmpty = (resource: string, id: string, count: number): MemoryError =>
  new MemoryError('not_empty', `${resource} ${id} still holds ${count} ${count === 1 ? 'Memory' : 'Memories'}`, {
    count,
  })

/** The record a request asks for; absent `auto_link_*` keys come from `old`. */
const recordOf = (
  request: WorkspaceRequest,
  old: typeof AUTO_LINK_DEFAULTS,
  id: string,
  createdAt: string,
  updatedAt: string,
): Workspace => ({
  ...request,
  id,
  auto_link_enabled: request.auto_link_enabled ?? old.auto_link_enabled,
  auto_link_threshold: request.auto_link_threshold ?? old.auto_link_threshold,
  auto_link_max_edges: request.auto_link_max_edges ?? old.auto_link_max_edges,
  auto_link_max_incoming_per_day: request.auto_link_max_incoming_per_day ?? old.auto_link_max_incoming_per_day,
  created_at: createdAt,
  updated_at: updatedAt,
})
