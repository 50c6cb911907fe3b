import * as z from 'zod'

/** Where the body of a version lies in a content store. */
export interface VersionKey {
  workspaceId: string
  memoryId: string
  watermark: string
}

export interface StoredObject {
  key: string
  /** When it was stored (ms). */
  storedAt: number
}

/**
 * Keeps bodies under keys of the form `<workspace>/<memory>/<version>`. Every method throws a ContentError when the
 * store does not do what it is asked, and the signal's reason when that ends it. Contract: memory.md 9.1, 9.3.
 */
export interface ContentStore {
  /** Where it is, without credentials. */
  readonly location: string
  /** The object is there, whole and durable, when it resolves; one that was there before is replaced at once. */
  put(key: string, body: Uint8Array, signal?: AbortSignal): Promise<void>
  /** Those that are there. */
  get(keys: readonly string[], signal?: AbortSignal): Promise<Map<string, Uint8Array>>
  /** It is no fault when one is not there. */
  delete(keys: readonly string[]): Promise<void>
  /** Pages of what lies below a prefix that ends in `/`, in key order, behind a key. */
  list(prefix: string, after?: string): AsyncIterable<StoredObject[]>
  /** Rejects with the reason when it could not be read now. Makes nothing. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** The content store failed; the message says where and why, and holds no secret. It is for logs, not for answers. */
export class ContentError extends Error {}

const SEGMENT = /^[A-Za-z0-9_-]{1,128}$/

/** @throws ContentError for an id that is none: nothing else may become part of a path. */
export function keyOf({ workspaceId, memoryId, watermark }: VersionKey): string {
  return [workspaceId, memoryId, watermark].map(segment).join('/')
}

/** What the keys of a Memory, or of a workspace, begin with. */
export const prefixOf = (...ids: readonly [workspaceId: string, memoryId?: string]): string =>
  ids.map((id) => `${segment(id ?? '')}/`).join('')

function segment(id: string): string {
  if (!SEGMENT.test(id)) throw new ContentError(`${JSON.stringify(id.slice(0, 200))} cannot be part of a content key`)
  return id
}

/** Objects to be deleted: some, or all of a Memory. */
export const erasureSchema = z.union([
  z.strictObject({ keys: z.array(z.string()) }),
  z.strictObject({ workspaceId: z.string(), memoryId: z.string() }),
])
export type Erasure = z.infer<typeof erasureSchema>

/** @throws ContentError */
export async function erase(store: ContentStore, erasure: Erasure): Promise<void> {
  if ('keys' in erasure) return store.delete(erasure.keys)
  for await (const page of store.list(prefixOf(erasure.workspaceId, erasure.memoryId))) {
    await store.delete(page.map(({ key }) => key))
  }
}

/** A store without anything in it, for what only reads a store that is not there yet. */
export const emptyContent = (location: string): ContentStore => ({
  location,
  put: () => Promise.reject(new ContentError(`${location} is not there`)),
  get: () => Promise.resolve(new Map()),
  delete: () => Promise.resolve(),
  async *list() {},
  ping: () => Promise.resolve(),
  close: () => Promise.resolve(),
})
