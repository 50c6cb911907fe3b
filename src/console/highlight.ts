import { documentTerms, queryTerms } from '../memory/search/analysis.ts'

/** A piece of text, marked when it is a word of the query. */
export interface Fragment {
  text: string
  isMatch: boolean
}

/** Only so far is a word of the query looked for: a Cell may be a whole book. */
const SEARCHED = 4000
const LEAD = 100
const WORD = /[\p{L}\p{N}]+/gu

/** Tells the words of a query as the index compares them; each word is looked at once, however many texts have it. */
export function wordsOf(query: string): (word: string) => boolean {
  const terms = new Set(queryTerms(query))
  const known = new Map<string, boolean>()
  return (word) => {
    const isAsked = known.get(word) ?? documentTerms(word).some((term) => terms.has(term))
    known.set(word, isAsked)
    return isAsked
  }
}

/**
 * The part of a text around the first word of the query, `length` characters at most, with its words marked as the index
 * compares them.
 */
export function highlight(text: string, isAsked: (word: string) => boolean, length: number): Fragment[] {
  const matches = [...text.slice(0, SEARCHED).matchAll(WORD)].filter(([word]) => isAsked(word))
  const from = text.length <= length ? 0 : Math.max(0, (matches[0]?.index ?? 0) - LEAD)
  const to = Math.min(text.length, from + length)
  const fragments: Fragment[] = from > 0 ? [{ text: '… ', isMatch: false }] : []
  let at = from
  for (const { 0: word, index } of matches) {
    if (index < at || index + word.length > to) continue
    fragments.push({ text: text.slice(at, index), isMatch: false }, { text: word, isMatch: true })
    at = index + word.length
  }
  fragments.push({ text: text.slice(at, to), isMatch: false })
  if (to < text.length) fragments.push({ text: ' …', isMatch: false })
  return fragments
    .map((fragment) => ({ ...fragment, text: fragment.text.replace(/\n\s*\n/g, '\n') }))
    .filter((fragment) => fragment.text !== '')
}
