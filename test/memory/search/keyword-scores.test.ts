import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CellTable } from '../../../src/memory/search/cell-table.ts'
import { KeywordScores } from '../../../src/memory/search/keyword-scores.ts'
import { LexicalIndex } from '../../../src/memory/search/lexical.ts'

const WORDS = ['ant', 'bat', 'cow', 'dog', 'elk', 'fox', 'gnu', 'hen']
/** The first words are in most texts, the last in few. */
const word = fc.nat(63).map((n) => WORDS[Math.floor(Math.log2(64 / (n + 1)) * 1.3)] ?? 'hen')
const text = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '))

test('a pruned list and its scores are those of all postings', () => {
  const cells = fc.array(fc.record({ text, memory: fc.nat(40) }), { minLength: 5, maxLength: 120 })
  const depth = fc.integer({ min: 1, max: 6 })
  fc.assert(
    fc.property(
      cells,
      fc.uniqueArray(word, { minLength: 1 }),
      depth,
      fc.nat(20),
      fc.boolean(),
      (docs, words, k, common, masked) => {
        const table = new CellTable()
        const lexical = new LexicalIndex()
        for (const [i, { text: content, memory }] of docs.entries()) {
          const { slot } = table.add({
            cellNo: i + 1,
            cellId: `cell_${i}`,
            memoryId: `mem_${memory}`,
            seq: i,
            text: content,
            collectionId: null,
            agentId: 'agent_test',
            createdAt: memory,
            vector: null,
          })
          lexical.add(slot, content)
        }
        const terms = lexical.query(words)
        const wanted = () => ({
          mask: masked ? Uint8Array.from(docs, (_, i) => i % 2) : undefined,
          depth: k,
          arrays: lexical.takeScores(),
        })
        const all = new KeywordScores(lexical, table, terms, wanted(), Infinity)
        const pruned = new KeywordScores(lexical, table, terms, wanted(), common)
        const shown = ({ list }: KeywordScores) => [...list.slots]
        expect(shown(pruned)).toEqual(shown(all))
        all.list.scores.forEach((score, i) => expect(pruned.list.scores[i]).toBeCloseTo(score, 4))
        docs.forEach((_, slot) => expect(pruned.at(slot)).toBeCloseTo(all.at(slot), 4))
      },
    ),
    { numRuns: 300, seed: 7 },
  )
})
