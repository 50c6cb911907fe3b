import { randomSource } from '../../test/memory/search/random-vectors.ts'

const VOCABULARY = 50_000
const SYLLABLES = 'ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu'.split(' ')

/** The n-th word of the vocabulary; each is another. */
function wordOf(n: number): string {
  let word = ''
  for (let rest = n; ; rest = Math.floor(rest / SYLLABLES.length) - 1) {
    word += SYLLABLES[rest % SYLLABLES.length]
    if (rest < SYLLABLES.length) return word
  }
}

/** Text by number: the n-th of 50,000 words comes about 1/n as often as the first (Zipf). */
export function textOf(number: number, words: number): string {
  const random = randomSource(number)
  return Array.from({ length: words }, () => wordOf(Math.floor(VOCABULARY ** random()) - 1)).join(' ')
}
