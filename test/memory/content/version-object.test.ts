import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseChunkerConfig, split } from '../../../src/memory/chunker/index.ts'
import { decodeVersion, encodeVersion } from '../../../src/memory/store/content/version-object.ts'

const text = fc.string({ unit: 'binary' }).map((each) => Buffer.from(each).toString())

test('a body and its Cells come back as they were, whether or not the Cells stand in the body', () => {
  fc.assert(
    fc.property(text, fc.array(text), (content, cells) => {
      expect(decodeVersion(encodeVersion({ content, cells }))).toEqual({ content, cells })
    }),
  )
  fc.assert(
    fc.property(fc.array(text), (parts) => {
      const content = parts.join('\n\n')
      expect(decodeVersion(encodeVersion({ content, cells: parts }))).toEqual({ content, cells: parts })
    }),
  )
})

test('Cells that stand in the body take no room of their own', () => {
  const content = Array.from({ length: 200 }, (_, i) => `Paragraph ${i}: words and words about ${i}.`).join('\n\n')
  const cells = split('default', parseChunkerConfig('default', undefined), content)
  expect(cells.length).toBeGreaterThan(1)
  expect(encodeVersion({ content, cells }).length).toBeLessThan(content.length + 20 * cells.length + 40)
})

test('what is no object of a version is told from one', () => {
  for (const bytes of ['', 'text', '{"format":2,"cells":[]}\nbody', '{"format":1}\nbody', '{"format":1,"cells":[']) {
    expect(decodeVersion(Buffer.from(bytes))).toBeUndefined()
  }
})
