import { describe, expect, test } from 'vitest'
import type {
  CellDocument,
  MemoryCells,
  SearchAnswer,
  SearchFilter,
  SearchQuery,
  VectorSearch,
} from '../../../src/memory/search/types.ts'
import { WorkspaceIndex } from '../../../src/memory/search/workspace-index.ts'
import { found, memoryId, memoryOf, search } from './cells.ts'
import { dot, vectorSource } from './random-vectors.ts'

const vectorOf = vectorSource(32, 'clustered')
const WORDS = ['ant', 'bat', 'cow', 'dog', 'elk', 'fox', 'gnu']

/** Turns of conversations, of one to three Cells each, in two collections, by three agents. */
const memoriesOf = (count: number): MemoryCells[] =>
  Array.from({ length: count }, (_, i) => {
    const texts = [0, 1, 2].slice(0, 1 + (i % 3)).map((seq) => `${WORDS[(i + seq) % 7]} ${WORDS[(i * 3) % 7]} ${i}`)
    const memory = memoryOf(i, texts, {
      collectionId: i % 50 === 0 ? 'coll_rare' : null,
      agentId: `agent_${i % 3}`,
    })
    for (const cell of memory.cells) cell.vector = vectorOf(cell.cellNo)
    return memory
  })

const elsewhere = (memories: readonly MemoryCells[]): MemoryCells[] =>
  memories.map(({ memoryId: id, cells }) => ({
    memoryId: id,
    cells: cells.map((cell): CellDocument => ({ ...cell, vector: 'elsewhere' })),
  }))

/** Holds the vectors, and compares them all; `reach` = how many of the nearest it finds before it gives up. */
function databaseOf(memories: readonly MemoryCells[], reach = Infinity): VectorSearch & { asked: string[] } {
  const vectors = new Map<number, Float32Array>()
  for (const { cells } of memories) for (const { cellNo } of cells) vectors.set(cellNo, vectorOf(cellNo))
  const nearest = (query: Float32Array, cellNos: Iterable<number>) =>
    [...cellNos]
      .flatMap((cellNo) => {
        const vector = vectors.get(cellNo)
        return vector ? [{ cellNo, cosine: dot(query, vector) }] : []
      })
      .sort((a, b) => b.cosine - a.cosine || a.cellNo - b.cellNo)
  const asked: string[] = []
  return {
    asked,
    async nearest(query, limit) {
      asked.push('nearest')
      return nearest(query, vectors.keys()).slice(0, Math.min(limit, reach))
    },
    async compare(query, cellNos, limit = cellNos.length) {
      asked.push('compare')
      return nearest(query, cellNos).slice(0, limit)
    },
  }
}

const FILTERS: SearchFilter[] = [
  {},
  { collectionId: 'coll_rare' },
  { agentIn: new Set(['agent_1']), after: 30 },
  { memoryIds: new Set([memoryId(3), memoryId(4), memoryId(400)]) },
  { agentNotIn: new Set(['agent_0', 'agent_1', 'agent_2']) },
]

describe.each([
  { kind: 'few Cells', count: 500, way: ['compare'] },
  { kind: 'many Cells', count: 4_000, way: ['nearest', 'compare'] },
])('a database that searches $kind', ({ count, way }) => {
  const memories = memoriesOf(count)
  const database = databaseOf(memories)
  const inMemory = new WorkspaceIndex({
    rescore: async (query, cellNos) => new Map(cellNos.map((cellNo) => [cellNo, dot(vectorOf(cellNo), query)])),
  })
  const remote = new WorkspaceIndex({ database })
  inMemory.apply(memories)
  remote.apply(elsewhere(memories))

  test.each(['vector', 'hybrid', 'weighted'] as const)('gives what memory gives: %s', async (mode) => {
    for (const filter of FILTERS) {
      for (let i = 0; i < 5; i++) {
        const query: Partial<SearchQuery> = {
          mode: mode === 'weighted' ? 'hybrid' : mode,
          ...(mode === 'weighted' && { weights: { vector: 2, keyword: 1 } }),
          vector: vectorOf(-1 - i),
          fusionWeight: 1,
          includeCells: true,
          filter,
        }
        const text = `${WORDS[i]} ${WORDS[i + 1]}`
        const [here, there] = [await search(inMemory, text, query), await search(remote, text, query)]
        expect(there.scanned).toBe(here.scanned)
        expect(there.hits).toHaveLength(here.hits.length)
        const strict = ({ hits }: SearchAnswer) => (mode === 'vector' ? hits.map((hit) => hit.cellNo) : [])
        expect(strict(there)).toEqual(strict(here))
        // In memory all but the first few cosines are those of codes, which are off by some 0.005.
        for (const [rank, hit] of there.hits.entries()) {
          expect(Math.abs(hit.score - (here.hits[rank]?.score ?? NaN))).toBeLessThan(0.03)
        }
      }
    }
    expect([...new Set(database.asked)]).toEqual(expect.arrayContaining(way))
  })
})

test('a filter does not starve hits, however early the database gives up', async () => {
  const memories = memoriesOf(4_000)
  const remote = new WorkspaceIndex({ database: databaseOf(memories, 100) })
  remote.apply(elsewhere(memories))
  const filter = { agentIn: new Set(['agent_1', 'agent_2']), before: 3_900 }
  const { hits } = await search(remote, '', { mode: 'vector', vector: vectorOf(-1), k: 100, filter })
  expect(hits).toHaveLength(100)
})

test('what the index does not know is no hit, and a query of zeros has none', async () => {
  const memories = memoriesOf(20)
  const remote = new WorkspaceIndex({ database: databaseOf(memories) })
  remote.apply(elsewhere(memories.slice(0, 10)))
  remote.apply([{ memoryId: memoryId(3), cells: [] }])
  const { hits, scanned } = await search(remote, '', { mode: 'vector', vector: vectorOf(-1), k: 100 })
  expect(new Set(found({ hits, scanned }))).toEqual(new Set([0, 1, 2, 4, 5, 6, 7, 8, 9].map(memoryId)))
  expect(found(await search(remote, '', { mode: 'vector', vector: new Float32Array(32) }))).toEqual([])
})
