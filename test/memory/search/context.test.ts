import { describe, expect, test } from 'vitest'
import { CellTable } from '../../../src/memory/search/cell-table.ts'
import { Coherence } from '../../../src/memory/search/coherence.ts'
import { LexicalIndex } from '../../../src/memory/search/lexical.ts'
import { WorkspaceIndex } from '../../../src/memory/search/workspace-index.ts'
import { found, memoryId, memoryOf, search } from './cells.ts'
import { randomSource } from './random-vectors.ts'

/** 400 turns that stay with a subject for twenty turns: eight of its fifteen words each. */
function conversation(): string[] {
  const random = randomSource(7)
  return Array.from({ length: 400 }, (_, turn) =>
    Array.from({ length: 8 }, () => `s${Math.floor(turn / 20)}w${Math.floor(15 * random())}`).join(' '),
  )
}

/** The same turns in an order without meaning. */
const pile = (): string[] => conversation().map((_, i, turns) => turns[(i * 147) % 400] ?? '')

function coherenceOf(texts: readonly string[], collectionOf: (i: number) => string | null): number[] {
  const table = new CellTable()
  const lexical = new LexicalIndex()
  texts.forEach((text, i) => {
    const [cell] = memoryOf(i, [text], { collectionId: collectionOf(i) }).cells
    if (cell) lexical.add(table.add(cell).slot, text)
  })
  const coherence = new Coherence(table, lexical)
  return table.streams().map((stream) => coherence.of(stream))
}

describe('coherence', () => {
  test('is 1 where neighbours speak of the same and 0 where they do not', () => {
    expect(coherenceOf(conversation(), () => null)).toEqual([1])
    expect(coherenceOf(pile(), () => null)).toEqual([0])
  })

  test('is judged for each long collection, and for short ones together', () => {
    const texts = [...conversation().slice(0, 200), ...pile().slice(0, 200)]
    expect(coherenceOf(texts, (i) => (i < 200 ? 'talk' : 'pile'))).toEqual([0, 1])
    expect(new Set(coherenceOf(conversation(), (i) => `session ${Math.floor(i / 20)}`))).toEqual(new Set([1]))
  })

  test('is 0 where there is too little to judge by', () => {
    expect(coherenceOf(conversation().slice(0, 50), () => null)).toEqual([0])
  })
})

describe('context', () => {
  const place = (texts: string[], at: number, ...inserted: string[]): string[] =>
    texts.with(at, inserted[0] ?? '').with(at + 1, inserted[1] ?? '')
  const withAnswer = (texts: string[]): WorkspaceIndex => {
    const index = new WorkspaceIndex()
    const all = place(place(texts, 100, 'which zither', 'tuned in fifths'), 300, 'a zither', 'nothing more').with(
      350,
      'fifths alone',
    )
    index.apply(all.map((text, i) => memoryOf(i, [text])))
    return index
  }

  test('finds one half of what is asked next to the other, in a conversation', async () => {
    const answer = await search(withAnswer(conversation()), 'zither fifths')
    expect(found(answer).slice(0, 2).sort()).toEqual([memoryId(100), memoryId(101)])
  })

  test('does not count in a pile of documents', async () => {
    const { hits } = await search(withAnswer(pile()), 'zither fifths')
    const inKeywordOrder = hits.map(({ keywordScore = 0 }) => keywordScore)
    expect(hits).toHaveLength(5)
    expect(inKeywordOrder.slice(0, 4).every((score) => score > 0)).toBe(true)
  })

  test('takes nothing from Memories that a filter hides', async () => {
    const filter = { memoryIds: new Set([memoryId(100), memoryId(300), memoryId(350)]) }
    const { hits } = await search(withAnswer(conversation()), 'zither fifths', { filter })
    expect(hits.map((hit) => hit.memoryId).sort()).toEqual([memoryId(100), memoryId(300), memoryId(350)])
  })
})

test('what was said by whom the query asks for comes first', async () => {
  const index = new WorkspaceIndex()
  const turns = ['Ada: I bought a loom', 'Bob: I bought a loom', 'Ada: good', 'Bob: good']
  index.apply(Array.from({ length: 20 }, (_, i) => memoryOf(i, [turns[i % 4] ?? ''])))
  const speakers = async (query: string): Promise<Set<number>> =>
    new Set(found(await search(index, query)).map((id) => Number(id.slice(4)) % 4))
  expect(await speakers('What did Bob buy? A loom?')).toEqual(new Set([1]))
  expect(await speakers('Was the loom bought by Ada?')).toEqual(new Set([0]))
})
