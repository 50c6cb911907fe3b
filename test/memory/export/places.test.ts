import { expect, test } from 'vitest'
import type { Caller } from '../../../src/memory/caller.ts'
import { runCli } from '../../cli/run-cli.ts'
import { startEmbeddingProvider } from '../../support/embedding-provider.ts'
import { startMemoryApi } from '../../support/memory-api.ts'
import { startPgvector } from '../../support/pgvector.ts'
import { createPlace, exported, imported, within, type Place } from './place.ts'
import { live, type Step } from './story.ts'

const STORY: Step[] = ['The keeper likes rye bread.', 'The lamp is lit at dusk.', 'The sea is grey.'].map((text) => ({
  op: 'imprint',
  text,
  which: 0,
  tag: 'topic',
}))
const caller = (): Caller => ({
  requestId: 'req_1',
  startedAt: 0,
  agentId: 'agent_test',
  signal: new AbortController().signal,
})

/** The best hit of a vector search. */
const nearest = (place: Place, ws: string, query: string): Promise<string | undefined> =>
  within(place, async ({ service }) => {
    const request = { query, mode: 'vector' as const, k: 1, include_cells: false }
    return (await service.recall.run(caller(), await service.requireWorkspace(ws), request)).results[0]?.text
  })

test('vectors of a remote model are left to the queue, which a server works off', async () => {
  const provider = await startEmbeddingProvider()
  const [here, there] = [
    await createPlace(),
    await createPlace('sqlite', () => ({ MEM_EMBEDDING_MODEL: 'openai:words-64', OPENAI_BASE_URL: provider.url })),
  ]
  const [ws = ''] = await within(here, (memory) => live(memory, STORY))
  const text = await exported(here)
  expect(await imported(there, text)).toMatchObject({ workspaces: { imported: 1 }, queued_cells: 3 })
  expect(provider.requests).toEqual([])
  expect(await exported(there)).toBe(text)
  await within(there, async ({ service }) => {
    service.start()
    const workspace = await service.requireWorkspace(ws)
    const ready = async (): Promise<boolean> => {
      const { items } = await service.memories.list(workspace, undefined, false, 10, undefined)
      return items.every((memory) => memory.recall_ready)
    }
    await expect.poll(ready).toBe(true)
  })
  expect(await nearest(there, ws, 'rye bread')).toBe('The keeper likes rye bread.')
  expect(await exported(there)).toBe(text)
  await here.remove()
  await there.remove()
  await provider.stop()
})

test('vectors go to pgvector', async () => {
  const server = await startPgvector()
  const [here, there] = [
    await createPlace(),
    await createPlace('sqlite', () => ({ MEM_VECTOR_DRIVER: 'pgvector', MEM_VECTOR_DSN: server.url })),
  ]
  const [ws = ''] = await within(here, (memory) => live(memory, STORY))
  const text = await exported(here)
  expect(await imported(there, text)).toMatchObject({ workspaces: { imported: 1 }, queued_cells: 0 })
  expect(await exported(there)).toBe(text)
  expect(await nearest(there, ws, 'rye bread')).toBe('The keeper likes rye bread.')
  await here.remove()
  await there.remove()
  await server.stop()
})

test.each(['sqlite', 'postgres'] as const)(
  'an index filled before an import holds nothing of what was replaced: %s',
  async (dialect) => {
    const [here, there] = [await createPlace(dialect), await createPlace(dialect)]
    const [ws = ''] = await within(here, (memory) => live(memory, STORY))
    const text = await exported(here)
    await imported(there, text)
    const request = { query: 'rye bread', mode: 'hybrid' as const, k: 1, include_cells: false }
    await within(there, async ({ service }) => {
      const workspace = await service.requireWorkspace(ws)
      await service.imprint.run(caller(), workspace, { content: 'Rye bread!' })
      const before = await service.recall.run(caller(), workspace, request)
      expect([before.results[0]?.text, before.total_candidates_scanned]).toEqual(['Rye bread!', 4])
      await imported(there, text, { rule: 'overwrite' })
      const { results, total_candidates_scanned } = await service.recall.run(caller(), workspace, request)
      expect([results[0]?.text, total_candidates_scanned]).toEqual(['The keeper likes rye bread.', 3])
    })
    await here.remove()
    await there.remove()
  },
)

test('a running server shows at once what was imported beside it, and what replaced it', async () => {
  const [here, there] = [await createPlace(), await createPlace()]
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir: there.env['MEM_DATA_DIR'] ?? '' })
  const [ws = ''] = await within(here, (memory) => live(memory, STORY))
  const recalled = async (query: string): Promise<string[]> => {
    const { body } = await api.call('POST', `/workspaces/${ws}/recall`, { query, mode: 'keyword' })
    return (body.results ?? []).map((hit: { text: string }) => hit.text)
  }
  const bring = async (...flags: string[]): Promise<void> => {
    const { stdout } = await runCli(['export', '-'], { env: here.env })
    const file = `${here.directory}/${flags.length}.jsonl`
    await runCli(['export', file], { env: here.env })
    expect(await runCli(['import', file, ...flags], { env: there.env })).toMatchObject({ code: 0, stderr: '' })
    expect((await runCli(['export', '-'], { env: there.env })).stdout).toBe(stdout)
  }
  await bring()
  expect(await recalled('bread')).toEqual(['The keeper likes rye bread.'])

  await within(here, async ({ service }) => {
    const workspace = await service.requireWorkspace(ws)
    const { items } = await service.memories.list(workspace, undefined, true, 10, undefined)
    const bread = items.find(({ content }) => content?.includes('bread'))
    await service.forget.run(caller(), ws, bread?.id ?? '', false, undefined)
    await service.imprint.run(caller(), workspace, { content: 'The keeper prefers spelt.' })
  })
  await bring('--conflict', 'overwrite')
  expect(await recalled('spelt')).toEqual(['The keeper prefers spelt.'])
  expect(await recalled('bread')).toEqual([])
  await api.stop()
  await here.remove()
  await there.remove()
})
