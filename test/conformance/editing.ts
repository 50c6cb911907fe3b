import { expect } from 'vitest'
import { md5 } from '../../src/base/hash.ts'
import type { CallOptions, MemoryApi, Reply } from '../support/memory-api.ts'
import { anId, expectNoEntry, expectOk } from '../support/expectations.ts'

export const IF_MATCH = (watermark: string): CallOptions => ({ headers: { 'If-Match': watermark } })

/** What the tests of edits do: each Memory in a workspace of its own. */
export function editing(api: () => MemoryApi) {
  /** A Memory: its workspace, its path, its first watermark. */
  const remember = async (content: string, fields: object = {}) => {
    const ws = await api().workspace()
    const made = expectOk(await api().call('POST', `/workspaces/${ws}/memories`, { content, ...fields }), 201)
    const id: string = made.memory_id
    return { ws, id, M: `/workspaces/${ws}/memories/${id}`, first: String(made.watermark) }
  }
  const lookup = async (M: string): Promise<Reply['body']> => expectOk(await api().call('GET', M))
  const head = async (M: string): Promise<string> => (await lookup(M)).head_watermark
  const update = (M: string, body: object, options?: CallOptions) => api().call('PUT', M, body, options)
  const patch = (M: string, operations: unknown, expected_watermark?: string, options?: CallOptions) =>
    api().call('PATCH', M, { patch: operations, expected_watermark }, options)
  const append = (M: string, body: object, options?: CallOptions) => api().call('POST', `${M}:append`, body, options)
  const E = (id: string, content: string) => ({
    memory_id: id,
    watermark: anId('wmk'),
    content_md5: md5(content),
    cells_skipped: expect.any(Number),
    last_modified_by_agent_id: 'agent_editor',
    ledger_id: anId('lg'),
    latency_ms: expect.any(Number),
  })
  const editor = { agent: 'agent_editor' }
  /** Runs what must leave the Memory and the ledger as they are. */
  const expectUnchanged = async (ws: string, M: string, action: () => Promise<void>): Promise<void> => {
    const before = await lookup(M)
    await expectNoEntry(api(), ws, action)
    expect(await lookup(M)).toEqual(before)
  }
  return { remember, lookup, head, update, patch, append, E, editor, expectUnchanged }
}
