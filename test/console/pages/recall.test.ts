import { expect, test } from 'vitest'
import { explain } from '../../../src/console/pages/recall.ts'
import type { RecallHit } from '../../../src/memory/model.ts'

const hit = (score: number, fields: Partial<RecallHit> = {}): RecallHit => ({
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
  expect(hits.map(({ keywordShare, vectorShare }) => [keywordShare, vectorShare])).toEqual([
    [0.5, 1],
    [1, 0.5],
    [undefined, 0],
  ])
})

test('a hit over the graph says from where', () => {
  const provenance = { from_memory_id: 'mem_x', edge_id: 'edg_1', edge_type: 'mentions', layer: 2 } as const
  const [only] = explain([hit(0.1, { via: 'graph', graph_provenance: provenance })], 'text')
  expect(only?.why).toBe('Reached over the graph: 2 hops from a direct hit, along mentions.')
})
