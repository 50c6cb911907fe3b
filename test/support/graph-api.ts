import { expectOk } from './expectations.ts'
import type { MemoryApi, Reply } from './memory-api.ts'

/** Every type that a client may name. */
export const TYPES = ['parent_of', 'derived_from', 'supersedes', 'references', 'session_of', 'mentions'] as const

export const memoryPath = (ws: string, id: string): string => `/workspaces/${ws}/memories/${id}`

/** The graph routes of the server under test. */
export function graphApi(api: () => MemoryApi) {
  const link = (ws: string, source: string, body: object): Promise<Reply> =>
    api().call('POST', `${memoryPath(ws, source)}/edges`, body)
  return {
    /** Ids of so many Memories, in no order. */
    imprintMany: (ws: string, count: number): Promise<string[]> =>
      Promise.all(Array.from({ length: count }, (_, i) => api().imprint(ws, `node ${i}`))),
    link,
    /** The id of a new Edge. */
    linked: async (ws: string, source: string, target: string, edge_type = 'references'): Promise<string> =>
      expectOk(await link(ws, source, { target_memory_id: target, edge_type }), 201).edge.edge_id,
    batch: (ws: string, edges: unknown): Promise<Reply> =>
      api().call('POST', `/workspaces/${ws}/edges/:batch`, { edges }),
    neighbors: (ws: string, body: object): Promise<Reply> =>
      api().call('POST', `/workspaces/${ws}/graph/neighbors`, body),
    traverse: (ws: string, body: object): Promise<Reply> =>
      api().call('POST', `/workspaces/${ws}/graph/traverse`, body),
    edgesOf: async (ws: string, id: string, query = ''): Promise<Reply['body'][]> =>
      expectOk(await api().call('GET', `${memoryPath(ws, id)}/edges?${query}`)).edges,
  }
}
