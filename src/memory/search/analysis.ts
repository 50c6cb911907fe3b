import { stem } from './stemmer.ts'
import { STOP_WORDS } from './stop-words.ts'

/**
 * The words of a text in any script: compatibility forms unified, marks stripped, lower-case; everything but letters and
 * digits separates. A run of a script written without spaces, its symbols with it, is cut into overlapping pairs of
 * characters.
 */
export function words(text: string): readonly string[] {
  if (text !== latest.text)
    latest = { text, words: runs(text).flatMap((run) => (UNSPACED.test(run) ? pairs(run) : run)) }
  return latest.words
}

/** The text cut last: of a query, words and vector are asked for one after the other. */
let latest: { text: string; words: readonly string[] } = { text: '', words: [] }

/**
 * The stems a Cell is found by, repetitions included; stop words too, for a query may consist of nothing else. What hyphens
 * join is found with them, without, and in parts.
 */
export function documentTerms(text: string): string[] {
  const terms: string[] = []
  for (const run of [...runs(text), ...compounds(text)]) {
    if (UNSPACED.test(run) && run.length > 1) terms.push(...pairs(run), ...run)
    else terms.push(stem(run))
  }
  return terms
}

/** The stems to search for: stop words only where there is nothing else. */
export function queryTerms(text: string): string[] {
  return [...contentWords(words(text)), ...compounds(text)].map(stem)
}

/** Without stop words, unless nothing would be left. */
export function contentWords(all: readonly string[]): readonly string[] {
  const content = all.filter((word) => !STOP_WORDS.has(word))
  return content.length > 0 ? content : all
}

/** Identifiers split where their case changes: `getUserById` gives `get User By Id`. */
export function splitIdentifiers(text: string): string {
  return UPPER_CASE.test(text) ? text.replace(CASE_CHANGE, ' ') : text
}

const UPPER_CASE = /\p{Lu}/u
const CASE_CHANGE = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu
const SCRIPTS = ['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar']
const UNSPACED_SET = SCRIPTS.map((name) => `\\p{Script=${name}}`).join('')
const UNSPACED = new RegExp(`[${UNSPACED_SET}]`, 'u')
const RUN = new RegExp(`[${UNSPACED_SET}]+|(?:(?![${UNSPACED_SET}])[\\p{L}\\p{N}])+`, 'gu')
const HYPHEN = /[-\u2010\u2011]/
const COMPOUND = /[\p{L}\p{N}]+(?:[-\u2010][\p{L}\p{N}]+)+/gu
const ASCII_RUN = /[a-z0-9]+/g
// eslint-disable-next-line no-control-regex
const ASCII = /^[\0-\x7f]*$/

/** No letters but those of ASCII are in a text. */
export const isAscii = (text: string): boolean => ASCII.test(text)

function runs(text: string): string[] {
  return isAscii(text) ? (text.toLowerCase().match(ASCII_RUN) ?? []) : (fold(text).match(RUN) ?? [])
}

/** NFC at the end puts Korean syllables together again. */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').normalize('NFC').toLowerCase()
}

/** `follow-up` as `followup`. */
export function compounds(text: string): string[] {
  if (!HYPHEN.test(text)) return []
  return (fold(text).match(COMPOUND) ?? []).map((compound) => compound.replace(/[^\p{L}\p{N}]/gu, ''))
}

/** A single character stays as it is. */
function pairs(run: string): string[] {
  const characters = [...run]
  if (characters.length === 1) return characters
  return characters.slice(1).map((character, i) => `${characters[i] ?? ''}${character}`)
}
