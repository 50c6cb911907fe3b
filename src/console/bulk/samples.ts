/** Sample texts: small notes as a team of agents might keep them. Equal seeds give equal texts. */

const SUBJECTS = ['the billing service', 'the search index', 'the mobile app', 'the data import', 'the login page']
const EVENTS = [
  'failed twice during the night',
  'was moved to the new cluster',
  'now answers in half the time',
  'lost its cache after the update',
  'refused requests from the test account',
  'was rewritten by the platform team',
]
const CAUSES = [
  'a certificate had ended',
  'the queue was longer than planned',
  'two jobs wrote the same row',
  'the limit of connections was too low',
  'nobody had renewed the key',
  'the clock of one machine was wrong',
]
const DECISIONS = [
  'We raise the limit and watch it for a week.',
  'The owner writes a test before the next release.',
  'Until then the old path stays switched on.',
  'The runbook has a new step for this.',
  'Support tells the three customers who asked.',
  'Nothing has to be done; the alarm was too strict.',
]
const PLACES = ['Lisbon', 'Oslo', 'Nairobi', 'Montréal', 'Kyoto', 'Wellington']

/** The `index`-th text of a seed, without those before it. */
export function sampleText(seed: number, index: number): string {
  const random = mulberry32(seed * 100_003 + index)
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)] ?? ''
  const subject = pick(SUBJECTS)
  const date = `2026-${two(1 + Math.floor(random() * 12))}-${two(1 + Math.floor(random() * 28))}`
  return (
    `Note ${index + 1}, ${date}, ${pick(PLACES)}.\n\n` +
    `${subject.charAt(0).toUpperCase()}${subject.slice(1)} ${pick(EVENTS)}, because ${pick(CAUSES)}. ${pick(DECISIONS)}\n`
  )
}

const two = (n: number): string => String(n).padStart(2, '0')

/** Tommy Ettinger's generator of 32 bits: small, fast, and the same everywhere. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
