import { expect, test } from 'vitest'
import { WorkspaceIndex } from '../../../src/memory/search/workspace-index.ts'
import { memoryOf, search } from './cells.ts'

test('the parts of a score of the default fusion add up to it, with what the Memories around lend', async () => {
  const turns = Array.from({ length: 120 }, (_, i) => {
    const topic = `lamp${Math.floor(i / 6)}`
    return `${i % 2 === 0 ? 'Ada' : 'User'}: the ${topic} again, its oil${Math.floor(i / 6)} and wick${i % 5}.`
  })
  const index = new WorkspaceIndex()
  index.apply(turns.map((text, i) => memoryOf(i, [text], { collectionId: 'coll_talk' })))
  const { hits } = await search(index, 'what did Ada say about lamp7, oil7 and wick2', { k: 20 })
  expect(hits.length).toBe(20)
  for (const { score, parts } of hits) {
    const made = Object.values(parts ?? {})
    expect(made.every((part) => part >= -1e-6)).toBe(true)
    expect(made.reduce((sum, part) => sum + part, 0)).toBeCloseTo(score, 5)
  }
  const lent = (name: 'wordsAround' | 'meaningAround' | 'speaker') =>
    hits.filter(({ parts }) => (parts?.[name] ?? 0) > 0)
  for (const name of ['wordsAround', 'meaningAround', 'speaker'] as const)
    expect([name, lent(name).length > 0]).toEqual([name, true])
  expect(hits[0]?.score).toBe(1)
})

test('other modes have no parts: the score is that of one signal', async () => {
  const index = new WorkspaceIndex()
  index.apply([memoryOf(1, ['the lamp'])])
  for (const mode of ['keyword', 'vector'] as const) {
    const { hits } = await search(index, 'lamp', { mode })
    expect(hits.map(({ parts }) => parts)).toEqual([undefined])
  }
})
