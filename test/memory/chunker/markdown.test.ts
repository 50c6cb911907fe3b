import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseChunkerConfig, split } from '../../../src/memory/chunker/index.ts'
import { ink, prose } from './support.ts'

const chunk = (content: string, tokens = '512'): string[] =>
  split('markdown', parseChunkerConfig('markdown', { target_tokens: tokens }), content)

describe('markdown', () => {
  test('memory#79 a fence is uncut, headings split, # in a fence does not', () => {
    const fence = `\`\`\`sh\n# comment\n\n${'echo long line\n'.repeat(300)}\`\`\``
    const content = `intro\n# One\ntext\n\nmore\n${fence}\nafter\n## Two\n### Three\nend`
    expect(chunk(content)).toEqual(['intro', '# One\ntext\n\nmore', fence, 'after', '## Two', '### Three\nend'])
  })

  test('what is a heading', () => {
    expect(chunk('a\n   # b\n#c\n####### d\n    # e\n\t# f\n###### g\n#')).toEqual([
      'a',
      '   # b\n#c\n####### d\n    # e\n\t# f',
      '###### g',
      '#',
    ])
  })

  test('what opens and closes a fence', () => {
    expect(chunk('~~~\n```\n~~\n~~~~ \nout')).toEqual(['~~~\n```\n~~\n~~~~ ', 'out'])
    expect(chunk('````\n```\n# in\n````\n# out')).toEqual(['````\n```\n# in\n````', '# out'])
    expect(chunk('``` a`b\n# heading')).toEqual(['``` a`b', '# heading'])
    expect(chunk('- item\n\n      ```\n      # in\n      ```\n- next')).toEqual([
      '- item',
      '      ```\n      # in\n      ```',
      '- next',
    ])
  })

  test('an open fence goes to the end; CRLF is no part of a Cell end', () => {
    expect(chunk('a\n```\n# b\n\nc')).toEqual(['a', '```\n# b\n\nc'])
    expect(chunk('a\r\n```\r\nb\r\n```\r\n# c\r\n')).toEqual(['a', '```\r\nb\r\n```', '# c'])
  })

  test('any text: nothing lost', () => {
    fc.assert(
      fc.property(prose, (content) => {
        expect(ink(chunk(content, '16').join(''))).toBe(ink(content))
      }),
      { seed: 2, numRuns: 500 },
    )
  })

  test.each([
    ['headings', '# a\n'.repeat(2_000_000)],
    ['back-ticks', '`'.repeat(8 << 20)],
    ['fences', '```\n'.repeat(2_000_000)],
  ])('8 MiB of %s', (_, content) => {
    expect(chunk(content).length).toBeGreaterThan(0)
  })
})
