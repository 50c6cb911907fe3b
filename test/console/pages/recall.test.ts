import fc from 'fast-check'
import { expect, test } from 'vitest'
import { explain } from '../../../src/console/pages/recall.ts'
import type { ExplainedHit } from '../../../src/memory/recall.ts'

const hit = (score: number, fields: Partial<ExplainedHit> = {}): ExplainedHit => ({
  memory_id: `mem_${score}`,
  score,
  text: 'text',
  watermark: 'wmk_1',
  written_by_agent_id: 'agent_a',
  via: 'seed',
  ...fields,
})

test('each hit is placed by every signal, with its lead over the next', () => {
  const hits = explain(
    [
      hit(0.9, { keyword_score: 2, vector_score: 0.5 }),
      hit(0.6, { keyword_score: 4, vector_score: 0.25 }),
      hit(0.1, { vector_score: -0.2 }),
    ],
    'text',
  )
  expect(hits.map(({ why }) => why)).toEqual([
    '2nd by words, 1st by meaning. Ahead of the next by 0.300.',
    '1st by words, 2nd by meaning. Ahead of the next by 0.500.',
    'None of its words match, 3rd by meaning.',
  ])
})

test('a hit over the graph says from where', () => {
  const provenance = { from_memory_id: 'mem_x', edge_id: 'edg_1', edge_type: 'mentions', layer: 2 } as const
  const [only] = explain([hit(0.1, { via: 'graph', graph_provenance: provenance })], 'text')
  expect(only?.why).toBe('Reached over the graph: 2 hops from a direct hit, along mentions.')
})

test('the lines of a score add up to what is shown', () => {
  const part = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(
      fc.record({ words: part, wordsAround: part, meaning: part, meaningAround: part, speaker: part }),
      (parts) => {
        const score = Object.values(parts).reduce((sum, value) => sum + value, 0)
        const [shown] = explain([hit(score, { parts, keyword_score: 1, vector_score: 0.5 })], 'text')
        const sum = (shown?.parts ?? []).reduce((total, line) => total + Math.round(Number(line.shown) * 1000), 0)
        expect(sum).toBe(Math.round(score * 1000))
      },
    ),
  )
})

test('what made nothing of a score is left out, but for the signals themselves', () => {
  const parts = { words: 0.4, wordsAround: 0, meaning: 0, meaningAround: 0.2, speaker: 0.4 }
  const [both] = explain([hit(1, { parts, keyword_score: 3.456, vector_score: -0.1 })], 'text')
  expect(both?.parts.map(({ name, hint, shown }) => [name, hint, shown])).toEqual([
    ['Words', 'BM25 3.46', '0.400'],
    ['Meaning', 'cosine -0.100', '0.000'],
    ['Meaning around it', undefined, '0.200'],
    ['Speaker asked for', undefined, '0.400'],
  ])
  const [alone] = explain([hit(2.5, { keyword_score: 2.5 })], 'text')
  expect(alone?.parts).toEqual([{ kind: 'words', name: 'Words', hint: 'BM25 2.50', share: 1, shown: '2.500' }])
})
