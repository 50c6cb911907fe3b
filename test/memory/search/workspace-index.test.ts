import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { embedDocument } from '../../../src/memory/embedder/hash.ts'
import { WorkspaceIndex } from '../../../src/memory/search/workspace-index.ts'
import { found, memoryId, memoryOf, search } from './cells.ts'
import { dot } from './random-vectors.ts'

const MODES = ['keyword', 'vector', 'hybrid'] as const

function indexOf(texts: readonly string[]): WorkspaceIndex {
  const index = new WorkspaceIndex()
  index.apply(texts.map((text, number) => memoryOf(number, [text])))
  return index
}

const HAYSTACK = Array.from(
  { length: 2_000 },
  (_, i) => `Report ${i} on harvest, weather and prices in region ${i % 7}.`,
)

describe('memory#64 keyword', () => {
  const index = indexOf(['The keeper painted lighthouses at dawn.', ...HAYSTACK])

  test('finds the oldest of 2000 Memories by stems and scattered words', async () => {
    expect(found(await search(index, 'painting a lighthouse', { mode: 'keyword' }))).toEqual([memoryId(0)])
    expect(found(await search(index, 'dawn over the keepers', { mode: 'keyword' }))).toEqual([memoryId(0)])
  })

  test('takes words as alternatives', async () => {
    expect(found(await search(index, 'unheard-of lighthouse zeppelins', { mode: 'keyword' }))).toEqual([memoryId(0)])
  })
})

test('memory#65 no character of a query is an operator', async () => {
  const index = indexOf(['rye bread', 'wheat bread', 'AND'])
  for (const text of ['"rye', 'rye*', 'rye AND -wheat', '(rye', 'NEAR(rye', 'rye:bread^2', '{rye}']) {
    expect(found(await search(index, text, { mode: 'keyword' }))).toContain(memoryId(0))
  }
  expect(found(await search(index, '"*()-'))).toEqual([])
  expect(found(await search(index, 'and', { mode: 'keyword' }))).toEqual([memoryId(2)])
})

test('memory#66 many matching Cells give one hit, with the best Cell', async () => {
  const index = new WorkspaceIndex()
  const fillers = Array.from({ length: 500 }, (_, i) => `owl number ${i} in the wood`)
  index.apply([memoryOf(1, [...fillers, 'owl owl snowy owl']), memoryOf(2, ['an owl'])])
  for (const mode of MODES) {
    const { hits } = await search(index, 'snowy owl', { mode })
    expect(hits.map((hit) => hit.memoryId)).toEqual([memoryId(1), memoryId(2)])
    expect(hits[0]?.cellNo).toBe(1_501)
  }
})

describe('memory#67 filters', () => {
  const index = new WorkspaceIndex()
  index.apply(
    HAYSTACK.map((text, i) =>
      memoryOf(i, [text], {
        collectionId: i % 1_000 === 7 ? 'coll_rare' : null,
        agentId: i % 500 === 3 ? 'agent_bob' : 'agent_ada',
      }),
    ),
  )
  const numbers = async (filter: object, mode: (typeof MODES)[number]): Promise<number[]> =>
    found(await search(index, 'harvest prices', { filter, mode, k: 4 })).map((id) => Number(id.slice(4)))

  test.each(MODES)('restrict candidates before the top k in mode %s', async (mode) => {
    const inOrder = async (filter: object): Promise<number[]> => (await numbers(filter, mode)).sort((a, b) => a - b)
    expect(await inOrder({ collectionId: 'coll_rare' })).toEqual([7, 1_007])
    expect(await inOrder({ collectionId: 'coll_none' })).toEqual([])
    expect(await inOrder({ agentIn: new Set(['agent_bob', 'agent_eve']) })).toEqual([3, 503, 1_003, 1_503])
    expect(await inOrder({ after: 1_990, before: 1_992 })).toEqual([1_990, 1_991])
    expect(await inOrder({ memoryIds: new Set([memoryId(5), memoryId(9_999)]) })).toEqual([5])
    const filter = { memoryIds: new Set([memoryId(7), memoryId(8)]), collectionId: 'coll_rare' }
    expect(await inOrder(filter)).toEqual([7])
    expect(await inOrder({ ...filter, agentNotIn: new Set(['agent_ada']) })).toEqual([])
  })
})

test('memory#68 ties go by memory_id, and equal data gives equal answers', async () => {
  const memories = Array.from({ length: 40 }, (_, i) => memoryOf(i, ['the same words'], { createdAt: 40 - i }))
  const index = new WorkspaceIndex()
  index.apply(memories)
  const detour = new WorkspaceIndex()
  detour.apply([...memories.slice(20), memoryOf(99, ['other words'])])
  detour.apply([memoryOf(99, []), ...memories.slice(0, 20)])
  for (const mode of MODES) {
    const answer = await search(index, 'same words', { mode, k: 10 })
    expect(found(answer)).toEqual(Array.from({ length: 10 }, (_, i) => memoryId(i)))
    expect(await search(detour, 'same words', { mode, k: 10 })).toEqual(answer)
  }
})

describe('memory#69 hybrid', () => {
  const index = indexOf(['red kite over the hill', 'red brick wall', 'blue kite', 'paper kites in wind', 'green grass'])

  test('scores 1 what is first in both lists, and less what is not', async () => {
    const { hits } = await search(index, 'red kite')
    expect(hits[0]).toMatchObject({ memoryId: memoryId(0), score: 1 })
    expect(hits.slice(1).every(({ score }) => score < 1 && score >= 0)).toBe(true)
  })

  test('with weights is the sum of both scores, min-max-normalised', async () => {
    const weights = { vector: 2, keyword: 0.5 }
    const { hits } = await search(index, 'red kite', { weights })
    const spread = (scores: number[]): ((score: number) => number) => {
      const lowest = Math.min(...scores)
      return (score) => (score - lowest) / (Math.max(...scores) - lowest)
    }
    const toVector = spread(hits.flatMap(({ vectorScore }) => vectorScore ?? []))
    const toKeyword = spread(hits.flatMap(({ keywordScore }) => keywordScore ?? []))
    expect(hits).toHaveLength(5)
    for (const { score, vectorScore, keywordScore } of hits) {
      const vector = vectorScore === undefined ? 0 : toVector(vectorScore)
      expect(score).toBeCloseTo(2 * vector + (keywordScore === undefined ? 0 : 0.5 * toKeyword(keywordScore)), 5)
    }
  })

  test('with weights gives 1 to each of a list without differences', async () => {
    const { hits } = await search(index, 'grass', { vector: null, weights: { vector: 1, keyword: 1 } })
    expect(hits).toMatchObject([{ memoryId: memoryId(4), score: 1 }])
  })
})

test('memory#70 old text and forgotten Memories are never found', async () => {
  const index = indexOf(['winter in Oslo', 'summer in Rome'])
  index.apply([memoryOf(0, ['spring in Paris'], { cellNo: 50_000 }), memoryOf(1, [])])
  expect(index.size).toBe(1)
  for (const mode of MODES) {
    const answer = await search(index, 'winter Oslo summer Rome', { mode })
    expect(found(answer)).toEqual(mode === 'keyword' ? [] : [memoryId(0)])
  }
})

test('memory#71 a hundred forgotten look-alikes leave 5 live hits', async () => {
  const texts = Array.from({ length: 110 }, (_, i) => `the heron stands in the reeds ${i}`)
  const index = indexOf(texts)
  index.apply(texts.slice(0, 100).map((_, i) => memoryOf(i, [])))
  for (const mode of MODES) expect((await search(index, 'heron in the reeds', { mode })).hits).toHaveLength(5)
})

test('memory#72 each Cell scored after filters counts once', async () => {
  const index = new WorkspaceIndex()
  index.apply([
    memoryOf(0, ['rye bread', 'wheat bread', 'water']),
    memoryOf(1, ['rye field'], { vector: null }),
    memoryOf(2, ['stone'], { agentId: 'agent_bob' }),
    memoryOf(3, ['?!']),
  ])
  const scanned = async (more: object): Promise<number> => (await search(index, 'rye', more)).scanned
  expect(await scanned({ mode: 'keyword' })).toBe(2)
  expect(await scanned({ mode: 'vector' })).toBe(4)
  expect(await scanned({ mode: 'hybrid' })).toBe(5)
  expect(await scanned({ filter: { agentNotIn: new Set(['agent_bob']) } })).toBe(4)
  expect(await scanned({ vector: null })).toBe(2)
})

describe('vectors', () => {
  test('come late, move with their Cell, and go', async () => {
    const index = new WorkspaceIndex()
    const waiting = memoryOf(1, ['first half', 'second half'], { vector: null })
    index.apply([waiting])
    expect(found(await search(index, 'half', { mode: 'vector' }))).toEqual([])
    index.apply([memoryOf(1, ['first half', 'second half'])])
    expect((await search(index, 'second', { mode: 'vector' })).hits[0]?.cellNo).toBe(1_002)
    index.apply([waiting])
    expect(found(await search(index, 'half', { mode: 'vector' }))).toEqual([])
  })

  test('of candidates are scored again with their values', async () => {
    const text = 'a quiet harbour'
    const asked: number[][] = []
    const index = new WorkspaceIndex({
      rescore: async (query, cellNos) => {
        asked.push([...cellNos])
        return new Map(cellNos.map((cellNo) => [cellNo, dot(embedDocument(text), query)]))
      },
    })
    index.apply([memoryOf(1, [text])])
    const { hits } = await search(index, '', { mode: 'vector', vector: embedDocument(text) })
    expect(asked).toEqual([[1_001]])
    expect(hits[0]?.score).toBeCloseTo(1, 6)
  })

  test('without words are no hits', async () => {
    const index = indexOf(['?!', 'words'])
    expect(found(await search(index, '...', { mode: 'vector' }))).toEqual([])
    expect(found(await search(index, 'words', { mode: 'vector' }))).toEqual([memoryId(1)])
  })
})

test('scored Cells of a hit come best first, at most ten', async () => {
  const index = new WorkspaceIndex()
  index.apply([
    memoryOf(
      1,
      Array.from({ length: 20 }, (_, i) => `owl ${'hoot '.repeat(i)}`),
    ),
  ])
  const [hit] = (await search(index, 'hoot', { includeCells: true })).hits
  expect(hit?.cells).toHaveLength(10)
  const scores = hit?.cells?.map(({ score }) => score) ?? []
  expect(scores).toEqual([...scores].sort((a, b) => b - a))
})

test('text in any script is found', async () => {
  const index = indexOf(['東京タワーは高い', 'Ёжик в тумане', 'Ein Käse', '서울의 밤'])
  const first = async (text: string): Promise<string | undefined> =>
    found(await search(index, text, { mode: 'keyword' }))[0]
  expect(await Promise.all(['東京', '高', 'ежик', 'kase', '서울'].map(first))).toEqual([0, 0, 1, 2, 3].map(memoryId))
})

test('an index changed step by step answers like one filled at once', async () => {
  const text = fc
    .array(fc.constantFrom('ant', 'bat', 'cow', 'dog', 'elk'), { maxLength: 4 })
    .map((all) => all.join(' '))
  const state = fc.record({ number: fc.nat(7), texts: fc.array(text, { maxLength: 3 }) })
  await fc.assert(
    fc.asyncProperty(fc.array(state, { maxLength: 30 }), async (states) => {
      const stepwise = new WorkspaceIndex()
      const last = new Map<number, ReturnType<typeof memoryOf>>()
      for (const [step, { number, texts }] of states.entries()) {
        const memory = memoryOf(number, texts)
        for (const [seq, cell] of memory.cells.entries()) cell.cellNo = step * 10 + seq + 1
        stepwise.apply([memory])
        last.set(number, memory)
      }
      const atOnce = new WorkspaceIndex()
      atOnce.apply([...last.values()])
      for (const mode of MODES) {
        const query = { mode, k: 10 }
        expect(await search(stepwise, 'bat cow elk', query)).toEqual(await search(atOnce, 'bat cow elk', query))
      }
    }),
    { numRuns: 60 },
  )
})
