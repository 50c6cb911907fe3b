import fc from 'fast-check'
import { expect, test } from 'vitest'
import { highlight, wordsOf } from '../../src/console/highlight.ts'

const marked = (text: string, query: string): string[] =>
  highlight(text, wordsOf(query), 600).flatMap((part) => (part.isMatch ? [part.text] : []))

test('words are marked as the index compares them, stop words not', () => {
  expect(marked('The certificates had ended. They end daily.', 'why did the certificate end')).toEqual([
    'certificates',
    'ended',
    'end',
  ])
})

test('a long text is shown around its first match', () => {
  const text = `${'nothing here. '.repeat(100)}The lamp burns. ${'more of it. '.repeat(100)}`
  const parts = highlight(text, wordsOf('lamp'), 600)
  const shown = parts.map((part) => part.text).join('')
  expect(shown.length).toBeLessThan(620)
  expect(shown).toContain('The lamp burns')
  expect([shown.startsWith('… '), shown.endsWith(' …')]).toEqual([true, true])
})

test('a short text comes whole, whatever is asked', () => {
  const short = fc.string({ maxLength: 500 }).filter((text) => !/\n\s*\n/.test(text))
  fc.assert(
    fc.property(short, fc.string(), (text, query) => {
      expect(
        highlight(text, wordsOf(query), 600)
          .map((part) => part.text)
          .join(''),
      ).toBe(text)
    }),
  )
})
