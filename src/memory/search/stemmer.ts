import { detached } from './detached.ts'

/**
 * The stemmer of M. F. Porter, "An algorithm for suffix stripping" (1980), for lower-case English words. Words with other
 * letters or digits, and words of two letters, come back as they are. `hash:default` uses it, so it is frozen with it.
 */
export function stem(word: string): string {
  let stemmed = memo.get(word)
  if (stemmed === undefined) {
    if (memo.size >= MEMO_LIMIT) memo.clear()
    stemmed = detached(ENGLISH.test(word) ? porter(word) : word)
    memo.set(detached(word), stemmed)
  }
  return stemmed
}

const MEMO_LIMIT = 100_000
const memo = new Map<string, string>()
const ENGLISH = /^[a-z]{3,60}$/

type Rule = readonly [suffix: string, replacement: string]

const STEP_2: readonly Rule[] = [
  ['ational', 'ate'],
  ['ization', 'ize'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['iveness', 'ive'],
  ['tional', 'tion'],
  ['biliti', 'ble'],
  ['entli', 'ent'],
  ['ousli', 'ous'],
  ['ation', 'ate'],
  ['alism', 'al'],
  ['aliti', 'al'],
  ['iviti', 'ive'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['izer', 'ize'],
  ['abli', 'able'],
  ['alli', 'al'],
  ['ator', 'ate'],
  ['eli', 'e'],
]
const STEP_3: readonly Rule[] = [
  ['icate', 'ic'],
  ['ative', ''],
  ['alize', 'al'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ness', ''],
  ['ful', ''],
]
const STEP_4: readonly Rule[] = 'ement ance ence able ible ment ant ent ism ate iti ous ive ize al er ic ou'
  .split(' ')
  .map((suffix) => [suffix, ''])

function porter(word: string): string {
  let w = plural(word)
  w = pastOrGerund(w)
  if (w.endsWith('y') && hasVowel(w.slice(0, -1))) w = `${w.slice(0, -1)}i`
  w = replaceSuffix(w, STEP_2, 0)
  w = replaceSuffix(w, STEP_3, 0)
  w = /[st]ion$/.test(w) ? dropIon(w) : replaceSuffix(w, STEP_4, 1)
  if (w.endsWith('e')) {
    const base = w.slice(0, -1)
    const m = measure(base)
    if (m > 1 || (m === 1 && !endsShort(base))) w = base
  }
  return w.endsWith('ll') && measure(w) > 1 ? w.slice(0, -1) : w
}

/** Step 1a. */
function plural(w: string): string {
  if (w.endsWith('sses') || w.endsWith('ies')) return w.slice(0, -2)
  return w.endsWith('s') && !w.endsWith('ss') ? w.slice(0, -1) : w
}

/** Step 1b. */
function pastOrGerund(w: string): string {
  if (w.endsWith('eed')) return measure(w.slice(0, -3)) > 0 ? w.slice(0, -1) : w
  const suffix = w.endsWith('ed') ? 2 : w.endsWith('ing') ? 3 : 0
  const base = w.slice(0, w.length - suffix)
  if (suffix === 0 || !hasVowel(base)) return w
  if (/(?:at|bl|iz)$/.test(base)) return `${base}e`
  if (endsDouble(base) && !/[lsz]$/.test(base)) return base.slice(0, -1)
  return measure(base) === 1 && endsShort(base) ? `${base}e` : base
}

/** Only the first suffix that fits counts, and only where the rest measures more than `least`. */
function replaceSuffix(w: string, rules: readonly Rule[], least: number): string {
  for (const [suffix, replacement] of rules) {
    if (!w.endsWith(suffix)) continue
    const base = w.slice(0, -suffix.length)
    return measure(base) > least ? base + replacement : w
  }
  return w
}

const dropIon = (w: string): string => (measure(w.slice(0, -3)) > 1 ? w.slice(0, -3) : w)

function isConsonant(w: string, at: number): boolean {
  const letter = w.charAt(at)
  if (letter === 'y') return at === 0 || !isConsonant(w, at - 1)
  return !'aeiou'.includes(letter)
}

/** How many times a vowel is followed by a consonant: m in [C](VC)^m[V]. */
function measure(w: string): number {
  let m = 0
  let afterVowel = false
  for (let i = 0; i < w.length; i++) {
    const consonant = isConsonant(w, i)
    if (consonant && afterVowel) m++
    afterVowel = !consonant
  }
  return m
}

function hasVowel(w: string): boolean {
  for (let i = 0; i < w.length; i++) if (!isConsonant(w, i)) return true
  return false
}

const endsDouble = (w: string): boolean => w.length > 1 && w.at(-1) === w.at(-2) && isConsonant(w, w.length - 1)

/** Ends consonant, vowel, consonant, the last not w, x or y. */
const endsShort = (w: string): boolean =>
  w.length > 2 &&
  isConsonant(w, w.length - 3) &&
  !isConsonant(w, w.length - 2) &&
  isConsonant(w, w.length - 1) &&
  !/[wxy]$/.test(w)
