import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { expectOk } from '../support/expectations.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

/** Of the event loop: filling an index takes hundreds of them, a query hardly one. */
const TURNS = 30
const QUERY_MS = 100

/** The time of a query counted in turns, so that a machine that stands still takes none of it. */
function afterTurns(): AbortSignal {
  const end = new AbortController()
  void (async () => {
    for (let turn = 0; turn < TURNS; turn++) await setImmediate()
    end.abort(new DOMException('the turns are up', 'TimeoutError'))
  })()
  return end.signal
}

let api: MemoryApi
beforeAll(async () => {
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => (ms === QUERY_MS ? afterTurns() : timeout(ms)))
  api = await startMemoryApi({ dialect: 'sqlite' })
})
afterAll(async () => {
  await api.stop()
  vi.restoreAllMocks()
})

test('memory#94 the first Memory after a start is linked: the time of a query begins when its index is filled', async () => {
  const ws = await api.workspace({ auto_link_enabled: true, chunker_id: 'jsonl' })
  const lines = (i: number): string => Array.from({ length: 15 }, (_, j) => `"note ${i} about ${j}"`).join('\n')
  const many = Array.from({ length: 200 }, (_, i) => api.imprint(ws, lines(i), { auto_link: false }))
  const notes = await Promise.all(many)
  const made = await api.call('POST', `/workspaces/${ws}/memories`, { content: lines(7), auto_link: true })
  expect(expectOk(made, 201).auto_linked_edges).toBe(10)
  const { edges } = expectOk(await api.call('GET', `/workspaces/${ws}/memories/${made.body.memory_id}/edges`))
  expect(edges.map((edge: { target_memory_id: string }) => edge.target_memory_id)).toContain(notes[7])
})
