import { expect, test } from 'vitest'
import { sampleText } from '../../../src/console/bulk/samples.ts'

test('the same seed and number give the same text; others differ', () => {
  const texts = (seed: number): string[] => Array.from({ length: 200 }, (_, i) => sampleText(seed, i))
  expect(texts(5)).toEqual(texts(5))
  expect(new Set([...texts(5), ...texts(6)]).size).toBe(400)
  expect(sampleText(1, 0)).toMatch(/^Note 1, 2026-\d\d-\d\d, \p{L}+\.\n\n\p{Lu}.+, because .+\. .+\n$/u)
})
