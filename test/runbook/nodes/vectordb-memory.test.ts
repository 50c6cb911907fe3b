import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import { startMemoryApi, type MemoryApi } from '../../support/memory-api.ts'
import { node, output, run } from '../support.ts'
import { attributes } from './recorder.ts'

let api: MemoryApi
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite' })
})
afterAll(() => api.stop())

const use = (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
  run(`node vectordb n {\n${attributes({ provider: 'mem', ...values })}\n}`, {
    services: { memory: { endpoint: api.url, agentId: 'agent_test' } },
    ...options,
  })

test('runbook#99 imprint, recall, update, forget', async () => {
  const workspace = await api.workspace()
  const rows = [{ content: 'The lighthouse keeper likes rye bread.' }, { content: 'The harbour is closed.' }]
  const written = output(await use({ workspace, operation: 'insert', data: rows, tags: { kind: 'note' } }), 'n') as {
    ids: string[]
  }
  expect(written).toMatchObject({ success: true, inserted: 2, count: 2 })
  const [id = ''] = written.ids

  const recall = async (query: string) =>
    output(await use({ workspace, query, mode: 'keyword', topK: 1, tags: { kind: 'note' } }), 'n')
  expect(await recall('rye bread')).toMatchObject({
    count: 1,
    results: [
      { id, text: expect.stringContaining('rye bread'), tags: { kind: 'note' }, watermark: expect.any(String) },
    ],
  })
  const updated = await use({ workspace, operation: 'upsert', memoryId: id, data: { content: 'He likes plums now.' } })
  expect(output(updated, 'n')).toEqual({ success: true, inserted: 0, updated: 1, count: 1, ids: [id] })
  expect(await recall('plums')).toMatchObject({ results: [{ id, tags: { kind: 'note' } }] })

  expect(output(await use({ workspace, operation: 'delete', memoryId: id }), 'n')).toEqual({
    success: true,
    deleted: 1,
  })
  expect(await recall('plums')).toMatchObject({ count: 0 })
  expect(node(await use({ workspace, operation: 'delete', memoryId: id }), 'n')?.error?.code).toBe('not_found')
})

test('runbook#99 what is missing, refused, gone', async () => {
  const failure = async (values: Record<string, unknown>, options: Partial<RunOptions> = {}) =>
    node(await use(values, options), 'n')?.error?.code
  expect(await failure({ query: 'x' })).toBe('config_invalid')
  expect(await failure({ workspace: 'ws_1', query: 'x' }, { services: {} })).toBe('config_invalid')
  expect(await failure({ workspace: 'ws_01ARZ3NDEKTSV4RRFFQ69G5FAV', query: 'x' })).toBe('not_found')
  expect(await failure({ workspace: 'ws_1', query: 'x', endpoint: 'http://169.254.169.254' })).toBe('address_refused')
  // the configured endpoint is exempt from what --deny-private-networks refuses, another one is not
  const guard = { denyPrivateNetworks: true }
  const workspace = await api.workspace()
  expect(await failure({ workspace, query: 'x', mode: 'keyword' }, { guard })).toBeUndefined()
  const other = { workspace, query: 'x', endpoint: api.url }
  expect(await failure(other, { guard, services: {} })).toBe('address_refused')
})
