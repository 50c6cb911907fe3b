import fc from 'fast-check'

/** What a chunker may not lose: the content without white space. */
export const ink = (text: string): string => text.replaceAll(/\s/g, '')

/** Texts rich in what chunkers look at: paragraphs, sentence ends, fences, headings, CRLF, characters of 1 to 4 bytes. */
export const prose: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: fc.stringMatching(/^[a-z]{1,12}$/) },
      fc.constantFrom(' ', '  ', '\n', '\n\n', '\r\n', '\r\n\r\n', ' \n \n', '\t', '. ', '! ', '? ', '.\n', '\u00A0'),
      fc.constantFrom('é', '漢字', '😀', '👩‍👩‍👧', 'e\u0301'),
      fc.constantFrom('\n# Title\n', '\n## ', '\n```\n', '\n~~~ js\n', '```', '#', '\n   ### x'),
    ),
    { maxLength: 150 },
  )
  .map((words) => words.join(''))

/** Old and new content that differ by one contiguous edit. */
export const edited: fc.Arbitrary<[before: string, after: string]> = fc
  .tuple(prose, prose, fc.nat(), fc.nat(200))
  .map(([before, insert, where, removed]) => {
    const at = codePointBorder(before, where % (before.length + 1))
    const end = codePointBorder(before, Math.min(before.length, at + removed))
    return [before, before.slice(0, at) + insert.slice(0, 300) + before.slice(end)]
  })

/** `at`, or the index before it where that would part a surrogate pair. */
export const codePointBorder = (text: string, at: number): number =>
  /[\uDC00-\uDFFF]/.test(text.charAt(at)) ? at - 1 : at
