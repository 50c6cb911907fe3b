import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { callTool, startSocket, type Answer, type Wire } from './support.ts'

let api: MemoryApi
let wire: Wire
let ws: string
beforeAll(async () => {
  api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_MCP_ENABLE: 'true' } })
  wire = await startSocket(api.url)
  ws = await api.workspace()
})
afterAll(async () => {
  await wire.close()
  await api.stop()
})

/** 2,000 tokens of 4 characters. */
const MOST = 8_000
const size = (answer: Answer): number => JSON.stringify(answer).length
const call = (name: string, args: object): Promise<Answer> => callTool(wire, name, { workspace_id: ws, ...args })

/** Follows the cursor to the end; every page must be small. */
async function pages(name: string, args: object): Promise<Answer[]> {
  const all: Answer[] = []
  for (let cursor: string | undefined; all.length === 0 || cursor !== undefined;) {
    const page = await call(name, { ...args, ...(cursor !== undefined && { cursor }) })
    expect(size(page)).toBeLessThanOrEqual(MOST)
    all.push(page)
    cursor = page.next_cursor
  }
  return all
}

const LONG = 'Rye 🍞 "bread"\n'.repeat(1500)

describe('mem_lookup of a long Memory', () => {
  test('comes in parts that make the content, with the tags and no Cells', async () => {
    const memory_id = await api.imprint(ws, LONG, { tags: { a: 'b' } })
    const parts = await pages('mem_lookup', { memory_id })
    expect(parts.length).toBeGreaterThan(2)
    expect(parts.map(({ content }) => content).join('')).toBe(LONG)
    expect(new Set(parts.map((part) => part.content_md5)).size).toBe(1)
    for (const part of parts) {
      expect(part).toMatchObject({ id: memory_id, tags: { a: 'b' } })
      expect(part).not.toHaveProperty('cells')
      expect(part.content).not.toMatch(/^[\udc00-\udfff]|[\ud800-\udbff]$/)
    }
  })

  test('goes on in the version it began with, and says that the head has moved', async () => {
    const memory_id = await api.imprint(ws, LONG)
    const first = await call('mem_lookup', { memory_id })
    const edit = { memory_id, agent_id: 'agent_test', content: 'short', expected_watermark: first.head_watermark }
    const { watermark } = await call('mem_update', edit)
    const second = await call('mem_lookup', { memory_id, cursor: first.next_cursor })
    expect(LONG.startsWith(first.content + second.content)).toBe(true)
    expect(second).toMatchObject({ head_watermark: first.head_watermark, current_watermark: watermark })
    const past = await pages('mem_lookup', { memory_id, watermark: first.head_watermark })
    expect(past.map(({ content }) => content).join('')).toBe(LONG)
  })

  test('is whole with include_cells, and without Cells when they are not wanted', async () => {
    const memory_id = await api.imprint(ws, LONG)
    const { body } = await api.call('GET', `/workspaces/${ws}/memories/${memory_id}`)
    expect(await call('mem_lookup', { memory_id, include_cells: true })).toEqual(body)
    const short = await api.imprint(ws, 'Rye bread.')
    expect(await call('mem_lookup', { memory_id: short, include_cells: false })).not.toHaveProperty('cells')
    expect((await call('mem_lookup', { memory_id: short })).cells).toHaveLength(1)
  })

  test('refuses a cursor of something else', async () => {
    const memory_id = await api.imprint(ws, 'Rye bread.')
    const { error } = await wire.call('tools/call', {
      name: 'mem_lookup',
      arguments: { workspace_id: ws, memory_id, cursor: 'WzFd' },
    })
    expect(error.data).toMatchObject({ error_code: 'invalid_input', details: { field: 'cursor' } })
  })
})

describe('lists', () => {
  test('end at 2,000 tokens unless a limit is given, and their cursor leads on', async () => {
    const own = await api.workspace()
    const ids: string[] = []
    for (let i = 0; i < 30; i++) ids.unshift(await api.imprint(own, `${i} ${'rye '.repeat(200)}`))
    const found = (await pages('mem_list_memories', { workspace_id: own })).flatMap(({ memories }) => memories)
    expect(found.map(({ id }: Answer) => id)).toEqual(ids)
    expect((await call('mem_list_memories', { workspace_id: own, limit: 30 })).memories).toHaveLength(30)
  })

  test('show a long Memory without its content, as REST does with include_content=false', async () => {
    const own = await api.workspace()
    await api.imprint(own, LONG)
    const [page, ...more] = await pages('mem_list_memories', { workspace_id: own })
    expect(more).toEqual([])
    const { body } = await api.call('GET', `/workspaces/${own}/memories?include_content=false`)
    expect(page).toEqual(body)
    expect((await call('mem_list_memories', { workspace_id: own, limit: 1 })).memories[0].content).toBe(LONG)
  })
})

describe('recall', () => {
  test('gives as many of its hits at once as fit, and the others behind the cursor', async () => {
    const own = await api.workspace()
    for (let i = 0; i < 8; i++) await api.imprint(own, `${i} ${'rye bread '.repeat(200)}`)
    const asked = { workspace_id: own, query: 'rye bread' }
    const { body } = await api.call('POST', `/workspaces/${own}/recall`, { query: asked.query })
    const parts = await pages('mem_recall', asked)
    expect(parts.length).toBeGreaterThan(1)
    expect(parts.flatMap(({ results }) => results)).toEqual(body.results)
    expect((await call('mem_recall', { ...asked, k: 5 })).results).toEqual(body.results)
  })

  test('in lookup brings the beginning of a long text', async () => {
    const ids = [await api.imprint(ws, LONG), await api.imprint(ws, 'Short.'), await api.imprint(ws, LONG)]
    const asked = { query: '', mode: 'lookup', memory_ids: ids }
    const hits = (await pages('mem_recall', asked)).flatMap(({ results }) => results)
    expect(hits.map(({ memory_id }: Answer) => memory_id)).toEqual(ids)
    expect(hits[1].text).toBe('Short.')
    for (const { text } of [hits[0], hits[2]]) {
      expect(LONG.startsWith(text)).toBe(true)
      expect(text.length).toBeGreaterThan(1000)
    }
    expect((await call('mem_recall', { ...asked, k: 3 })).results[0].text).toBe(LONG)
  })
})

describe('the graph', () => {
  const others: string[] = []
  let hub: string
  beforeAll(async () => {
    hub = await api.imprint(ws, 'hub')
    for (let i = 0; i < 60; i++) others.push(await api.imprint(ws, `spoke ${i}`, { tags: { number: String(i) } }))
    const edges = others.map((id) => ({ source_memory_id: hub, target_memory_id: id, edge_type: 'mentions' }))
    const chain = others.slice(1).map((id) => ({ source_memory_id: id, target_memory_id: hub, edge_type: 'mentions' }))
    await api.call('POST', `/workspaces/${ws}/edges/:batch`, { edges: [...edges, ...chain] })
  })

  test('neighbors: each page has its Edges and the headers of their far ends, each once', async () => {
    const { body } = await api.call('POST', `/workspaces/${ws}/graph/neighbors`, { memory_id: hub })
    const parts = await pages('mem_neighbors', { memory_id: hub })
    expect(parts.length).toBeGreaterThan(1)
    expect(parts.flatMap(({ edges }) => edges)).toEqual(body.edges)
    for (const { edges, neighbors } of parts) {
      const ends = edges.map((edge: Answer) =>
        edge.source_memory_id === hub ? edge.target_memory_id : edge.source_memory_id,
      )
      expect(neighbors.map(({ memory_id }: Answer) => memory_id)).toEqual([...new Set(ends)])
    }
    expect(await call('mem_neighbors', { memory_id: hub, k: 50 })).toEqual(body)
  })

  test('traverse: the layers of all pages, one upon the other, are those of REST', async () => {
    const asked = { seed_memory_id: others[0], depth: 2, direction: 'both' }
    const { body } = await api.call('POST', `/workspaces/${ws}/graph/traverse`, asked)
    const parts = await pages('mem_traverse', asked)
    expect(parts.length).toBeGreaterThan(1)
    expect([0, 1].map((depth) => parts.flatMap(({ layers }) => layers[depth] ?? []))).toEqual(body.layers)
    for (const { seed, stats } of parts) expect({ seed, stats }).toEqual({ seed: body.seed, stats: body.stats })
  })
})
